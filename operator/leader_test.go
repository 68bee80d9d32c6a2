// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/operator"
)

// A lease is one that no process takes. From a time on, no renewal of it is answered for a minute,
// whatever its context: as if the process were stopped.
type lease struct {
	record resourcelock.LeaderElectionRecord
	stops  time.Time
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, []byte(l.record.RenewTime.String()), nil
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if now := time.Now(); now.After(l.stops) && now.Before(l.stops.Add(time.Minute)) {
		time.Sleep(time.Minute)
	}
	l.record = record
	return nil
}

func (*lease) RecordEvent(string) {}
func (*lease) Identity() string   { return "me" }
func (*lease) Describe() string   { return "a fake" }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newManager returns a manager whose API server answers everything.
func newManager(t *testing.T, lock resourcelock.Interface) ctrl.Manager {
	t.Helper()
	config := &rest.Config{Host: "http://api.example.com"}
	config.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		})
	})
	mgr, err := operator.NewManager(config, ctrl.Options{
		LeaderElection: true, LeaderElectionReleaseOnCancel: true, LeaderElectionResourceLockInterface: lock,
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) {
			return apimeta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// A leader whose Lease has expired writes nothing and begins no action, and what runs ends. When it
// has renewed the Lease after all it continues.
func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := newManager(t, &lease{stops: time.Now().Add(30 * time.Second)})
		send := func(method string) error {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://api.example.com/x", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			answer, err := mgr.GetHTTPClient().Do(r)
			if err == nil {
				_ = answer.Body.Close()
			}
			return err
		}
		action := func(ctx context.Context, run func(context.Context) error) error {
			_, err := ctrlkit.NewAction("act", func(ctx context.Context) (ctrl.Result, error) { return ctrl.Result{}, run(ctx) }).Run(ctx)
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			defer cancel()
			began := time.Now()
			if err := errors.Join(send(http.MethodPost), action(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})); !errors.Is(err, operator.ErrExpired) || time.Since(began) < 30*time.Second || time.Since(began) > 47*time.Second {
				t.Errorf("an action ended with %v after %v", err, time.Since(began))
			}
			if err := send(http.MethodPost); !errors.Is(err, operator.ErrExpired) {
				t.Errorf("a write: %v", err)
			}
			if err := send(http.MethodGet); err != nil {
				t.Errorf("a read: %v", err)
			}
			if err := action(ctx, func(context.Context) error { return nil }); !errors.Is(err, operator.ErrExpired) {
				t.Errorf("an action began: %v", err)
			}
			time.Sleep(time.Minute)
			if err := errors.Join(send(http.MethodPost), action(ctx, func(context.Context) error { return nil })); err != nil {
				t.Errorf("with the Lease again: %v", err)
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Without leader election there is nothing to fence.
func TestWithoutLeaderElection(t *testing.T) {
	config := &rest.Config{Host: "http://api.example.com"}
	mgr, err := operator.NewManager(config, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) {
			return apimeta.NewDefaultRESTMapper(nil), nil
		},
	})
	if err != nil || mgr.GetConfig().WrapTransport != nil {
		t.Errorf("the clients are wrapped, or %v", err)
	}
}
