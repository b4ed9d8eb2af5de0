// A graph of USearch in a process: what "vectors -usearch" compares with. Cosine, M 16, and the
// defaults of the library otherwise.
//
//     usearch FOLDER DIMS K f32|i8
//
// FOLDER has items.f32 and queries.f32, rows of DIMS float32 values. All threads build the graph.
// Each line of the input is a value of expansion_search: all queries are then searched by one
// thread, and a line has the nanoseconds and the found items of each. Lines of the output are JSON.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <usearch/index_dense.hpp>

#ifndef WITH_NUMKONG
#define WITH_NUMKONG 0
#endif
#if WITH_NUMKONG
#include <numkong/spatial.h>
#endif

using namespace unum::usearch;
using clock_type = std::chrono::steady_clock;

static std::vector<float> read(std::string const& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    std::vector<float> rows(static_cast<std::size_t>(file.tellg()) / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(rows.data()), static_cast<std::streamsize>(rows.size() * sizeof(float)));
    return rows;
}

#if WITH_NUMKONG
// USearch looks for this kernel in NumKong's library, which is built apart. The headers have it as
// well, for the processor that is compiled for.
static float cosine_i8(nk_i8_t const* a, nk_i8_t const* b, std::size_t n) {
    nk_f32_t distance;
    nk_angular_i8(a, b, n, &distance);
    return distance;
}
#endif

// cosine takes the fastest kernels that there are. NumKong's for float32 sums in float64, and takes
// twice as long as the loop in USearch's headers.
static metric_punned_t cosine(std::size_t dims, scalar_kind_t kind) {
#if WITH_NUMKONG
    if (kind == scalar_kind_t::i8_k)
        return metric_punned_t::stateful(dims, reinterpret_cast<std::uintptr_t>(&cosine_i8), dims, metric_kind_t::cos_k, kind);
#endif
    return metric_punned_t(dims, metric_kind_t::cos_k, kind);
}

static int run(std::string const& folder, std::size_t dims, std::size_t k, bool bytes) {
    std::vector<float> items = read(folder + "/items.f32"), queries = read(folder + "/queries.f32");
    std::size_t const n = items.size() / dims;
    std::size_t const threads = std::max(1u, std::thread::hardware_concurrency());
    index_dense_t index = index_dense_t::make(cosine(dims, bytes ? scalar_kind_t::i8_k : scalar_kind_t::f32_k), index_dense_config_t(16));
    if (!index.try_reserve(index_limits_t(n, threads)))
        throw std::runtime_error("no memory for the graph");
    auto start = clock_type::now();
    std::vector<std::thread> builders;
    std::atomic<bool> failed(false);
    for (std::size_t t = 0; t != threads; ++t)
        builders.emplace_back([&, t] {
            for (std::size_t i = t; i < n; i += threads)
                if (!index.add(i, items.data() + i * dims, t))
                    failed = true;
        });
    for (auto& b : builders)
        b.join();
    if (failed)
        throw std::runtime_error("an item was not added");
    std::chrono::duration<double> took = clock_type::now() - start;
    std::vector<float>().swap(items);
    auto tapes = index.memory_stats();
    std::size_t const unused = tapes.graph_reserved + tapes.vectors_reserved; // at the ends of blocks
    std::printf("{\"version\":\"%d.%d.%d%s\",\"threads\":%zu,\"build\":%g,\"memory\":%zu}\n", //
                USEARCH_VERSION_MAJOR, USEARCH_VERSION_MINOR, USEARCH_VERSION_PATCH, WITH_NUMKONG && bytes ? ", NumKong" : "",
                threads, took.count(), index.memory_usage() - unused);
    std::fflush(stdout);

    std::vector<index_dense_t::vector_key_t> found(k);
    for (std::size_t expansion; std::cin >> expansion;) {
        index.change_expansion_search(expansion);
        std::string nanos, keys;
        for (std::size_t q = 0; q != queries.size() / dims; ++q) {
            auto at = clock_type::now();
            auto result = index.search(queries.data() + q * dims, k, 0);
            std::size_t hits = result.dump_to(found.data());
            std::chrono::nanoseconds spent = clock_type::now() - at;
            nanos += (q ? "," : "") + std::to_string(spent.count());
            keys += q ? ",[" : "[";
            for (std::size_t h = 0; h != hits; ++h)
                keys += (h ? "," : "") + std::to_string(found[h]);
            keys += "]";
        }
        std::printf("{\"nanos\":[%s],\"found\":[%s]}\n", nanos.c_str(), keys.c_str());
        std::fflush(stdout);
    }
    return 0;
}

int main(int argc, char** argv) {
    try {
        if (argc != 5)
            throw std::runtime_error("usage: usearch FOLDER DIMS K f32|i8");
        return run(argv[1], std::stoul(argv[2]), std::stoul(argv[3]), argv[4] == std::string("i8"));
    } catch (std::exception const& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
