// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

// errNetwork is what looking up a name, and connecting with the transport of package net/http,
// answers in a run.
var errNetwork = errors.New("sim: the real network is not there in a simulation")

// network refuses the real network to the goroutines of runs: time stands still for them while they
// wait for it, and what package net shares between them must not be made in a bubble.
var network struct {
	once    sync.Once
	refused sync.Map // by bubble, a func(what string) to call when it was refused
}

// guardNetwork refuses the network to the bubble of this goroutine, and reports the line that uses
// it. The function that it returns ends this.
func guardNetwork(refused func(what string)) (end func()) {
	id := bubbleID()
	network.refused.Store(id, refused)
	return func() { network.refused.Delete(id) }
}

// prepareNetwork puts the guard where package net and net/http ask: once, and outside of bubbles,
// as it makes the channels of package net.
func prepareNetwork() {
	network.once.Do(func() {
		resolver, dial := net.DefaultResolver, net.DefaultResolver.Dial
		if dial == nil {
			dial = (&net.Dialer{}).DialContext
		}
		resolver.PreferGo, resolver.Dial = true, guarded("looks up a name", dial)
		if transport, ok := http.DefaultTransport.(*http.Transport); ok && transport.DialContext != nil {
			transport.DialContext = guarded("connects", transport.DialContext)
		}
		// A look-up that asks nothing makes what look-ups share.
		nowhere := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNetwork }}
		_, _ = nowhere.LookupHost(context.Background(), "sim.invalid") //nolint:errcheck // it is refused
	})
}

type dialContext = func(ctx context.Context, network, address string) (net.Conn, error)

// guarded returns a dial function that refuses the goroutines of runs.
func guarded(what string, dial dialContext) dialContext {
	return func(ctx context.Context, protocol, address string) (net.Conn, error) {
		if refused, ok := network.refused.Load(bubbleID()); ok {
			refused.(func(string))(what + " at " + address)
			return nil, errNetwork
		}
		return dial(ctx, protocol, address)
	}
}

// bubbleID returns what names the bubble of this goroutine; empty outside of one.
func bubbleID() string {
	var buffer [256]byte
	header, _, _ := bytes.Cut(buffer[:runtime.Stack(buffer[:], false)], []byte("\n"))
	return bubbleOf(header)
}

// bubbleOf returns what names the bubble of a goroutine, whose stack has a header.
func bubbleOf(header []byte) string {
	_, bubble, ok := bytes.Cut(header, []byte("synctest bubble "))
	if !ok {
		return ""
	}
	if end := bytes.IndexAny(bubble, ",]"); end >= 0 {
		bubble = bubble[:end]
	}
	return string(bubble)
}

// networkRefused reports that the operator uses the network. The function may be called in any
// goroutine.
func (r *run) networkRefused(what string) {
	at := networkSite()
	if at != "" {
		at = " at " + at
	}
	r.judge.Report(oracle.ScriptRuns, fmt.Sprintf("the operator uses the real network%s (it %s), which is refused: give it a fake, with Process.HTTP or "+
		"Process.Call, or let it through with sim.WithNetwork", at, what))
}

// networkSite returns the line of the operator's code that uses the network, empty if it is not
// known. Look-ups and connections have goroutines of their own, for which the one of the operator
// waits.
func networkSite() string {
	if own := site(writes.Stack(2)); own != "" {
		return own
	}
	for _, stack := range goroutinesOfBubble() {
		if strings.Contains(stack, "\nnet.(*Resolver)") || strings.Contains(stack, "\nnet/http.(*Transport).getConn") {
			if own := writes.SiteOfText(stack); own != "" {
				return own
			}
		}
	}
	return ""
}

// watchNetwork ends the process, with the stack, when a goroutine of a run waits for the network:
// time would stand still until that is over. The function that it returns ends the watch.
func watchNetwork() (end func()) {
	done := make(chan struct{})
	go func() {
		for last := false; ; {
			select {
			case <-done:
				return
			case <-time.After(networkPatience):
			}
			stack := waitsForNetwork()
			if stack != "" && last {
				panic("sim: a goroutine of a simulation waits for the real network, so that time stands still: " +
					"give it a fake, with Process.HTTP or Process.Call, or let it through with sim.WithNetwork\n" + stack)
			}
			last = stack != ""
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// networkPatience is how long a goroutine may wait for the network, in real time, at least.
const networkPatience = 2 * time.Second

// waitsForNetwork returns the stack of a goroutine in a bubble that waits for the network, or "".
func waitsForNetwork() string {
	buffer := make([]byte, 1<<20)
	for _, stack := range bytes.Split(buffer[:runtime.Stack(buffer, true)], []byte("\n\n")) {
		header, _, _ := bytes.Cut(stack, []byte("\n"))
		if _, guarded := network.refused.Load(bubbleOf(header)); guarded && bytes.Contains(header, []byte("[IO wait")) {
			return string(stack)
		}
	}
	return ""
}
