// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// The body of a watch: what was pushed is read, also after the end, and then the end.
func TestWatchBody(t *testing.T) {
	b := newWatchBody(context.Background())
	b.push([]byte("one "))
	b.push([]byte("two"))
	b.end(io.EOF)
	b.end(errors.New("a second end"))
	if data, err := io.ReadAll(b); string(data) != "one two" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	if !b.gone() {
		t.Error("it is not gone after its end")
	}
}

func TestWatchBodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		b := newWatchBody(ctx)
		read := make(chan string, 3)
		go func() {
			buffer := make([]byte, 2)
			for {
				n, err := b.Read(buffer)
				if err != nil {
					read <- err.Error()
					return
				}
				read <- string(buffer[:n])
			}
		}()
		synctest.Wait()
		if len(read) != 0 || b.gone() {
			t.Fatal("it was read although nothing was pushed")
		}
		b.push([]byte("abc"))
		synctest.Wait()
		if a, rest := <-read, <-read; a != "ab" || rest != "c" {
			t.Errorf("got %q and %q", a, rest)
		}
		cancel()
		if got := <-read; got != io.EOF.Error() || !b.gone() {
			t.Errorf("after the context: %q, gone %t", got, b.gone())
		}
	})
}

func TestWatchBodyThatIsClosed(t *testing.T) {
	b := newWatchBody(context.Background())
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) || !b.gone() {
		t.Errorf("got %v, gone %t", err, b.gone())
	}
}

// Requests that wait at the same time are ordered by what they ask for. The time limits of watches
// are random in client-go, and would make the order random.
func TestOrderKey(t *testing.T) {
	key := func(query string) string {
		t.Helper()
		r, err := apiserver.NewRequest("GET", "/api/v1/configmaps?"+query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		before := r.Query.Encode()
		k := orderKey(r)
		if r.Query.Encode() != before {
			t.Errorf("the request was changed: %s became %s", before, r.Query.Encode())
		}
		return k
	}
	if a, b := key("watch=true&timeoutSeconds=301"), key("timeout=5s&watch=true"); a != b {
		t.Errorf("%q differs from %q", a, b)
	}
	if a, b := key("watch=true&resourceVersion=1"), key("watch=true&resourceVersion=2"); a == b {
		t.Errorf("%q is the key of two requests", a)
	}
}
