// Gateway is a real S3-compatible server on loopback for the tests of packages
// s3 and artifact: the gateway of Versity over a folder. It lives until its
// stdin ends.
//
// Usage: gateway FOLDER BUCKET ACCESS-KEY SECRET-KEY
//
// It prints its address when it answers. It is a module of its own, so that its
// dependencies are none of the project's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: gateway FOLDER BUCKET ACCESS-KEY SECRET-KEY")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(dir, bucket, access, secret string) error {
	// The gateway has a few words of its own for stdout, which is the caller's.
	out := os.Stdout
	os.Stdout = os.Stderr
	// Attributes of objects are kept beside them: not every file system of a
	// test has extended attributes.
	objects, attributes := filepath.Join(dir, "objects"), filepath.Join(dir, "attributes")
	err := errors.Join(os.MkdirAll(filepath.Join(objects, bucket), 0o700), os.MkdirAll(attributes, 0o700))
	if err != nil {
		return err
	}
	store, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, store, posix.PosixOpts{SideCarDir: attributes})
	if err != nil {
		return err
	}
	addr, err := freePort()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: access, RootUserSecret: secret, Ports: []string{addr},
		MaxConnections: 64, MaxRequests: 64, MultipartMaxParts: 100, Quiet: true, KeepAlive: true,
		S3Options: []s3api.Option{s3api.WithOnListen(func() { fmt.Fprintln(out, addr) })},
	})
}

// freePort is a port that was free a moment ago: the gateway wants a number.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
