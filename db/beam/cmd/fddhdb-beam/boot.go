package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
)

// A runner with the environment PROCESS starts a program for each worker, with --id and --provision_endpoint,
// and that program has to start the worker. This program is both.

// workerArgs returns the arguments of a worker, nil if it is to be none.
func workerArgs(args []string) []string {
	if slices.Contains(args, "--worker") || slices.Contains(args, "--worker=true") {
		return args
	}
	return nil
}

// boots reports whether a runner asks for a worker.
func boots(args []string) bool {
	return slices.ContainsFunc(args,
		func(a string) bool { return strings.HasPrefix(a, "--provision_endpoint=") })
}

// boot asks the runner where its services are, and runs a worker.
func boot(ctx context.Context, args []string) error {
	given := map[string]string{}
	for _, a := range args {
		if name, value, ok := strings.Cut(strings.TrimLeft(a, "-"), "="); ok {
			given[name] = strings.Trim(value, "'") // Prism leaves quotes that no shell has taken away
		}
	}
	endpoint := given["provision_endpoint"]
	info, err := tools.ProvisionInfo(grpcx.WriteWorkerID(ctx, given["id"]), endpoint)
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	at := func(flag, told string) string {
		for _, url := range []string{given[flag], told} {
			if url != "" {
				return url
			}
		}
		return endpoint
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "--worker=true", "--id="+given["id"],
		"--logging_endpoint="+at("logging_endpoint", info.GetLoggingEndpoint().GetUrl()),
		"--control_endpoint="+at("control_endpoint", info.GetControlEndpoint().GetUrl()))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "RUNNER_CAPABILITIES="+strings.Join(info.GetRunnerCapabilities(), " "))
	if url := info.GetStatusEndpoint().GetUrl(); url != "" {
		cmd.Env = append(cmd.Env, "STATUS_ENDPOINT="+url)
	}
	return run(cmd)
}
