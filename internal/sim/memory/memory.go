// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/players"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// A Handler answers a request, which was read: its body is JSON, also if it came in protobuf.
type Handler func(w http.ResponseWriter, r *http.Request, request *apiserver.Request)

// Options are the options of [Start]. The zero value is usable.
type Options struct {
	// Definitions are installed before Start returns.
	Definitions []*apiextensionsv1.CustomResourceDefinition

	// Players play the controllers that the cluster does not have. If it is nil, they are
	// player.Defaults(). Without any, as in player.None(), nothing makes a Node and the
	// ServiceAccounts of the Namespaces, either.
	Players player.Set

	// Source is the cluster of which this one is a copy. If it is nil, the cluster is new: it has a
	// Node for its players, and no objects but those of every cluster.
	Source Source

	// Changed is called for each change that is made in the cluster, in the order of the changes.
	// It must return at once, and call no method of the cluster. It may be nil.
	Changed func(apiserver.Change)

	// Asked is called for each request of a client, before it is answered. It may be called
	// concurrently. It may be nil.
	Asked func(*apiserver.Request)

	// Wrap wraps what answers the requests of clients, to answer some of them otherwise. It is called
	// once, before Start returns. It may be nil.
	Wrap func(Handler) Handler

	// Admission decides about the writes of clients and of players, as admission webhooks do. It
	// may be nil.
	Admission apiserver.Admission
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	server   *apiserver.Server
	config   *rest.Config
	dir      string // of the kubeconfig file
	http     *http.Server
	stopping context.Context // ends when the cluster stops
	cancel   context.CancelFunc
	running  sync.WaitGroup
	stop     func() error // runs once
	changed  chan struct{}
	done     chan struct{} // closed when the cluster has failed

	turn    sync.Mutex // held by what changes the cluster: a request, or a player
	players *players.Players
	played  bool                   // there are players
	changes func(apiserver.Change) // of Options.Changed; nil if there is none
	asked   func(*apiserver.Request)
	wrap    func(Handler) Handler // of Options.Wrap; nil if there is none
	copied  *original             // nil unless the cluster is a copy

	mu  sync.Mutex // guards err
	err error
}

// history is how many changes a cluster remembers. That is hours of an operator that renews its Lease
// every two seconds.
const history = 10_000

// Start starts a cluster that is ready when Start returns.
func Start(o Options) (_ *Cluster, err error) {
	c := &Cluster{server: apiserver.New(apiserver.Options{Seed: uint64(time.Now().UnixNano()), History: history, Admission: o.Admission}), changed: make(chan struct{}, 1), done: make(chan struct{})}
	c.stopping, c.cancel = context.WithCancel(context.Background())
	c.stop = sync.OnceValue(c.stopAll)
	c.changes, c.asked, c.wrap = o.Changed, o.Asked, o.Wrap
	defer func() {
		if err != nil {
			err = fmt.Errorf("starting a cluster in memory: %w", errors.Join(err, c.Stop()))
		}
	}()
	if err := c.server.Install(o.Definitions...); err != nil {
		return nil, err
	}
	if err := c.cast(o.Players); err != nil {
		return nil, err
	}
	switch {
	case o.Source != nil:
		err = c.copyFrom(o.Source)
	case c.played:
		err = c.createNode()
	}
	if err != nil {
		return nil, err
	}
	if err := c.listen(); err != nil {
		return nil, err
	}
	c.running.Go(c.play)
	return c, nil
}

// cast lets the players take over what is in the cluster, and then each change.
func (c *Cluster) cast(set player.Set) (err error) {
	if set == nil {
		set = player.Defaults()
	}
	if c.played = len(set) > 0; c.played {
		set = set.With(serviceAccounts)
	}
	c.players, err = players.New(players.Options{
		Set: set, Cluster: cluster.New(c.server, nil, func() {}), Scheme: scheme.Scheme, Failed: c.fail,
	})
	if err != nil {
		return err
	}
	for _, o := range c.server.Objects() {
		c.players.Changed(apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content})
	}
	c.server.OnChange(func(change apiserver.Change) { // by what has the turn
		c.players.Changed(change)
		if c.changes != nil {
			c.changes(change)
		}
		select {
		case c.changed <- struct{}{}:
		default:
		}
	})
	return nil
}

// listen serves the API on a free port of the loopback interface.
func (c *Cluster) listen() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening on the loopback interface: %w", err)
	}
	secrets, err := newCredentials()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c.config = secrets.config("https://" + listener.Addr().String())
	served := Handler(c.serve)
	if c.wrap != nil {
		served = c.wrap(served)
	}
	c.http = &http.Server{
		Handler:           secrets.guard(apiserver.Reading(served), c.server.Authenticate),
		TLSConfig:         secrets.serverTLS(),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // of clients that break off
	}
	c.running.Go(func() {
		if err := c.http.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			c.fail(fmt.Sprintf("serving the API: %v", err))
		}
	})
	if c.dir, err = os.MkdirTemp("", "ctrlkit-memory-"); err != nil {
		return fmt.Errorf("creating a directory for the kubeconfig file: %w", err)
	}
	return writeKubeconfig(c.config, c.Kubeconfig())
}

// play does the background work and calls the players until the cluster stops. Requests can come
// between two calls.
func (c *Cluster) play() {
	for {
		due := c.playDue()
		var timer <-chan time.Time
		if !due.IsZero() {
			timer = time.After(time.Until(due))
		}
		select {
		case <-c.changed:
		case <-timer:
		case <-c.stopping.Done():
			return
		}
	}
}

// playDue does what is due, and returns when the next call is.
func (c *Cluster) playDue() time.Time {
	for c.playOnce() { //nolint:revive // each call does one thing
	}
	return c.Due()
}

// Due returns when a player does something next if nothing changes before; zero if none waits.
func (c *Cluster) Due() time.Time {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.players.Due()
}

func (c *Cluster) playOnce() bool {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.server.Work() || c.players.Step()
}

// fail records why the cluster is of no more use.
func (c *Cluster) fail(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = errors.New(text)
		close(c.done)
	}
}

// Done returns a channel that is closed when the cluster has failed.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err returns why the cluster has failed, or nil if it has not.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stop ends the cluster and all connections to it, and removes its kubeconfig file. It may be called
// more than once.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) stopAll() error {
	c.cancel()
	var errs []error
	if c.http != nil {
		errs = append(errs, c.http.Close())
	}
	c.running.Wait()
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the cluster in memory: %w", err)
	}
	return nil
}
