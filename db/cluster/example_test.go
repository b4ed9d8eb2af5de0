package cluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// A program that has some of the shards, as long as it runs.
func ExampleOpen() {
	ctx := context.Background()
	nc, err := cluster.ConnectNATS("nats://nats1,nats://nats2,nats://nats3",
		nats.UserCredentials("node.creds"))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	node, err := cluster.Open(ctx, cluster.NodeOptions{Cluster: "main", Node: "a", Dir: "/data", Conn: nc,
		Backups: "s3://backups/main"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	// Once, when the nodes run: cluster.Create(ctx, nc, "main", cluster.CreateOptions{Shards: 16, Replicas:
	// 2})
	select {}
}

// A program that writes and searches.
func ExampleConnect() {
	ctx := context.Background()
	nc, err := cluster.ConnectNATS("nats://nats1,nats://nats2,nats://nats3",
		nats.UserCredentials("client.creds"))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := cluster.Connect(ctx, nc, "main", cluster.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	photos := c.Collection("photos")
	if _, err := photos.Put(ctx,
		&db.Item{Key: "a.jpg", Vectors: map[string][]float32{"image": make([]float32, 512)}}); err != nil {
		log.Fatal(err)
	}
	res, err := photos.Search(ctx,
		cluster.Query{Query: db.Query{From: "text", Vector: make([]float32, 384), To: "image", K: 20}})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range res.Hits {
		fmt.Println(h.Distance, h.Key)
	}
}
