// Server and client of one file over QUIC, as jostle's recipe `quic-go` starts them. They speak
// HTTP/0.9 over QUIC (`hq-interop`), as the programs of the QUIC interoperability runner do: a line
// "GET /name" on a stream, and the bytes of the file in answer.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	protocol = "hq-interop"
	// One of the names in the certificate.
	serverName = "jostle"
	// Nobody asks for more than a name.
	maxRequestBytes = 1024
	// What has not reached the disk by then is not waited for.
	farewell = 500 * time.Millisecond
)

func main() {
	run := map[string]func([]string) error{"server": server, "client": client}
	if len(os.Args) < 2 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: jostle-quic-go server|client ...; -h lists the options")
		os.Exit(2)
	}
	if err := run[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func server(arguments []string) error {
	options := flag.NewFlagSet("server", flag.ExitOnError)
	listen := options.String("listen", "127.0.0.1:4433", "`address:port` to listen at")
	certificate := options.String("certificate", "", "PEM `file`")
	key := options.String("key", "", "PEM `file`")
	www := options.String("www", ".", "`folder` whose files are sent")
	folder := options.String("qlog", "", "`folder` for a log of each connection; none if absent")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	root, err := os.OpenRoot(*www)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", *listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	logs := logs{folder: *folder}
	transport := &quic.Transport{Conn: socket}
	listener, err := transport.Listen(
		&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}},
		&quic.Config{Tracer: logs.trace},
	)
	if err != nil {
		return err
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for {
		connection, err := listener.Accept(asked)
		if err != nil {
			break
		}
		go answer(connection, root)
	}
	if asked.Err() == nil {
		return errors.New("the listener has ended")
	}
	// Logs are whole only when their connections have ended.
	_ = transport.Close()
	logs.wait()
	return nil
}

// answer sends a file on each stream of a connection on which one is asked for.
func answer(connection *quic.Conn, root *os.Root) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			if err := send(stream, root); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				stream.CancelWrite(1)
			}
		}()
	}
}

func send(stream *quic.Stream, root *os.Root) error {
	line, err := bufio.NewReader(io.LimitReader(stream, maxRequestBytes)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	name, asks := strings.CutPrefix(strings.TrimSpace(line), "GET /")
	if !asks {
		return fmt.Errorf("no request: %q", line)
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(stream, file); err != nil {
		return err
	}
	return stream.Close()
}

func client(arguments []string) error {
	options := flag.NewFlagSet("client", flag.ExitOnError)
	server := options.String("server", "127.0.0.1:4433", "`address:port` to connect to")
	certificate := options.String("certificate", "", "PEM `file` of the only one that is trusted")
	downloads := options.String("downloads", ".", "`folder` that the file is written into")
	window := options.Uint64("window", 1<<20, "`bytes` that may be on their way to it")
	name := options.String("get", "data", "`name` of the file")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*certificate)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no certificate", *certificate)
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	connection, err := quic.DialAddr(
		asked,
		*server,
		&tls.Config{RootCAs: trusted, ServerName: serverName, NextProtos: []string{protocol}},
		&quic.Config{
			InitialStreamReceiveWindow:     *window,
			MaxStreamReceiveWindow:         *window,
			InitialConnectionReceiveWindow: *window,
			MaxConnectionReceiveWindow:     *window,
		},
	)
	if err != nil {
		return err
	}
	context.AfterFunc(asked, func() { _ = connection.CloseWithError(0, "interrupted") })
	if err := fetch(asked, connection, *name, *downloads); err != nil {
		return err
	}
	return connection.CloseWithError(0, "")
}

func fetch(asked context.Context, connection *quic.Conn, name, downloads string) error {
	stream, err := connection.OpenStreamSync(asked)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET /%s\r\n", name); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(downloads, filepath.Base(name)))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, stream); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// logs writes a qlog of each connection, and knows when all are whole.
type logs struct {
	folder string
	open   sync.WaitGroup
}

func (l *logs) trace(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	if l.folder == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(l.folder, id.String()+".sqlog"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return nil
	}
	l.open.Add(1)
	log := qlogwriter.NewConnectionFileSeq(&logFile{bufio.NewWriter(file), file, &l.open}, isClient, id)
	go log.Run()
	return log
}

func (l *logs) wait() {
	whole := make(chan struct{})
	go func() {
		l.open.Wait()
		close(whole)
	}()
	select {
	case <-whole:
	case <-time.After(farewell):
	}
}

type logFile struct {
	*bufio.Writer
	file *os.File
	open *sync.WaitGroup
}

func (f *logFile) Close() error {
	defer f.open.Done()
	return errors.Join(f.Flush(), f.file.Close())
}
