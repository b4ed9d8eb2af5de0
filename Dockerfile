# A server, and the command line, as an image of one static program, its certificates for
# backups to S3, and two empty folders:
#
#   docker build -t fddhdb .
#   docker run --rm -v fddhdb:/data fddhdb token tokens --name admin --scope admin
#   docker run -d -v fddhdb:/data -p 127.0.0.1:7070:7070 fddhdb
#   docker run --rm -it -v "$PWD:/data" -u "$(id -u):$(id -g)" fddhdb a.db
#
# Databases are in /data. Without arguments it serves main.db there, which it creates, by
# HTTP without TLS: a proxy in front of it has that. Without -u the user is 65532, who owns
# the volume that a container gets if it is given none.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# A worktree of git has no repository of its own, which would name the version.
RUN git rev-parse --git-dir >/dev/null 2>&1 || export GOFLAGS=-buildvcs=false; \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags='-s -w' -o /image/fddhdb ./cmd/fddhdb
RUN mkdir -p /image/etc/ssl/certs /image/tmp /image/data && \
    cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ && \
    chmod 1777 /image/tmp && chown 65532:65532 /image/data

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
# The history of the shell, and which encoders may run, stay with the databases.
ENV XDG_STATE_HOME=/data/.state
WORKDIR /data
VOLUME /data
EXPOSE 7070
# It fails where a database has failed, and while large ones are opened.
HEALTHCHECK --interval=30s --timeout=10s --start-period=5m --start-interval=2s CMD ["/fddhdb", "health", "http://127.0.0.1:7070"]
ENTRYPOINT ["/fddhdb"]
CMD ["serve", "/data/main.db", "--create", "--address", ":7070", "--tokens", "/data/tokens", "--plain"]
