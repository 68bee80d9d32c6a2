// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// dials counts connections: each is named by the order of its dial.
type dials struct {
	mu     sync.Mutex // for all below
	n      int
	closed []string
	fails  error
	lasts  time.Duration
}

func (d *dials) dial(ctx context.Context) (string, error) {
	d.mu.Lock()
	d.n++
	name, err, lasts := fmt.Sprintf("conn-%d", d.n), d.fails, d.lasts
	d.mu.Unlock()
	select {
	case <-time.After(lasts):
		return name, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (d *dials) close(conn string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = append(d.closed, conn)
	return nil
}

func (d *dials) pool() *Pool[string] { return &Pool[string]{Close: d.close} }

func get(t *testing.T, p *Pool[string], version string, d *dials) Lease[string] {
	t.Helper()
	lease, err := p.Get(t.Context(), "system", version, d.dial)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestPoolDialsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{lasts: time.Second}
		p := d.pool()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				lease := get(t, p, "v1", d)
				if lease.Conn != "conn-1" {
					t.Errorf("connection %s", lease.Conn)
				}
				if err := lease.Release(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if d.n != 1 || len(d.closed) > 0 {
			t.Errorf("%d dials, closed %v", d.n, d.closed)
		}
	})
}

func TestPoolClosesWhenCredentialsChange(t *testing.T) {
	d := &dials{}
	p := d.pool()
	first, second := get(t, p, "v1", d), get(t, p, "v1", d)
	third := get(t, p, "v2", d)
	_ = first.Release()
	_ = first.Release() // counts once
	if third.Conn != "conn-2" || len(d.closed) > 0 {
		t.Fatalf("connection %s, closed %v while it is used", third.Conn, d.closed)
	}
	_ = second.Release()
	if diff := cmp.Diff([]string{"conn-1"}, d.closed); diff != "" {
		t.Fatal(diff)
	}
	_ = third.Release()
	fourth := get(t, p, "v3", d) // nothing uses the old one
	if diff := cmp.Diff([]string{"conn-1", "conn-2"}, d.closed); diff != "" || fourth.Conn != "conn-3" {
		t.Fatalf("connection %s: %s", fourth.Conn, diff)
	}
}

func TestPoolSeparatesSystems(t *testing.T) {
	d := &dials{}
	p := d.pool()
	get(t, p, "v1", d)
	other, err := p.Get(t.Context(), "other", "v1", d.dial)
	if err != nil || other.Conn != "conn-2" || len(d.closed) > 0 {
		t.Errorf("%v, %v", other.Conn, err)
	}
}

func TestPoolForgetsFailedDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{fails: errors.New("refused"), lasts: time.Second}
		p := d.pool()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := p.Get(t.Context(), "system", "v1", d.dial); !errors.Is(err, d.fails) {
					t.Errorf("error %v", err)
				}
			})
		}
		all.Wait()
		if d.n != 1 {
			t.Errorf("%d dials for those who waited", d.n)
		}
		d.fails = nil
		if lease := get(t, p, "v1", d); lease.Conn != "conn-2" || len(d.closed) > 0 {
			t.Errorf("connection %s, closed %v", lease.Conn, d.closed)
		}
	})
}

func TestPoolWaitsAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{lasts: time.Minute}
		p := d.pool()
		go func() { get(t, p, "v1", d) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := p.Get(ctx, "system", "v1", d.dial); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Hour)
		// The one that gave up does not count as a user.
		lease := get(t, p, "v1", d)
		get(t, p, "v2", d)
		_ = lease.Release()
		if len(d.closed) > 0 {
			t.Error("closed while the first one uses it")
		}
	})
}

func TestPoolDialsAgainForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{lasts: time.Minute}
		p := d.pool()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if _, err := p.Get(ctx, "system", "v1", d.dial); !errors.Is(err, context.Canceled) {
				t.Errorf("the canceled call has the error %v", err)
			}
		}()
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		if lease := get(t, p, "v1", d); lease.Conn != "conn-2" {
			t.Errorf("connection %s", lease.Conn)
		}
	})
}

func TestPoolSurvivesPanic(t *testing.T) {
	d := &dials{}
	p := d.pool()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_, _ = p.Get(t.Context(), "system", "v1", func(context.Context) (string, error) { panic("bug") })
	}()
	if lease := get(t, p, "v1", d); lease.Conn != "conn-1" {
		t.Errorf("connection %s", lease.Conn)
	}
}

func TestPoolReportsFailedClose(t *testing.T) {
	d, failed := &dials{}, errors.New("broken pipe")
	p := &Pool[string]{Close: func(string) error { return failed }}
	_ = get(t, p, "v1", d).Release()
	if _, err := p.Get(t.Context(), "system", "v2", d.dial); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if lease := get(t, p, "v2", d); lease.Conn != "conn-2" {
		t.Errorf("connection %s", lease.Conn)
	}
}

func TestPoolUnderRace(t *testing.T) {
	d := &dials{}
	p := d.pool()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			lease := get(t, p, fmt.Sprintf("v%d", i%5), d)
			d.mu.Lock()
			if slices.Contains(d.closed, lease.Conn) {
				t.Errorf("%s was closed while it is used", lease.Conn)
			}
			d.mu.Unlock()
			_ = lease.Release()
		})
	}
	all.Wait()
	if got := len(d.closed); got != d.n-1 {
		t.Errorf("%d dials, %d closed: all but the last one should be", d.n, got)
	}
}

// When the operator ends, each connection is closed: one that is used when its use ends. After that
// there are none.
func TestPoolIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dials{}
		p := d.pool()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Start(ctx) }()
		used := get(t, p, "1", d)
		unused, err := p.Get(t.Context(), "other", "1", d.dial)
		if err != nil || unused.Release() != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(d.closed) > 0 {
			t.Errorf("closed %v before the end", d.closed)
		}
		cancel()
		if err := <-ended; err != nil || !slices.Equal(d.closed, []string{"conn-2"}) {
			t.Errorf("closed %v, error %v", d.closed, err)
		}
		if _, err := p.Get(t.Context(), "system", "1", d.dial); !errors.Is(err, errPoolClosed) {
			t.Errorf("another connection: error %v", err)
		}
		if err := used.Release(); err != nil || !slices.Equal(d.closed, []string{"conn-2", "conn-1"}) || d.n != 2 {
			t.Errorf("closed %v of %d, error %v", d.closed, d.n, err)
		}
	})
}
