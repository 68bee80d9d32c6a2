// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A SystemAudit is the audit of one external system, made by [AuditOf].
type SystemAudit struct {
	name string
	run  func(ctx context.Context, scheme *runtime.Scheme) (orphans.System, error)
}

// AuditOf returns the audit of a system, whose name is for people: its address. System and objects
// are as for [Audit], which is called when a user asks for it.
func AuditOf(name string, system Lister, objects func(ctx context.Context) ([]Holder, error)) SystemAudit {
	return SystemAudit{name, func(ctx context.Context, scheme *runtime.Scheme) (orphans.System, error) {
		unowned, missing, err := Audit(ctx, system, objects)
		if err != nil {
			return orphans.System{}, err
		}
		var result orphans.System
		for _, r := range unowned {
			result.Orphans = append(result.Orphans, orphans.Resource{Scope: r.Scope, ID: r.ID, Owner: r.Owner})
		}
		for _, obj := range missing {
			gvk, err := apiutil.GVKForObject(obj, scheme)
			if err != nil {
				return orphans.System{}, err
			}
			result.Missing = append(result.Missing, orphans.Object{
				Object: journal.Object{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}, ID: IDOf(obj),
			})
		}
		return result, nil
	}}
}

// ServeAudits serves audits for "ctrlkit orphans", on the metrics server of mgr and with its
// protection. It does nothing if that server is disabled. Call it once, before the manager is
// started.
//
//   - Systems returns the audits of all systems that the operator uses now.
//   - They run when a user asks, in each replica, leader or not, one question after the other.
//   - An audit that fails does not keep others from being shown. After a minute it is given up.
func ServeAudits(mgr manager.Manager, systems func(ctx context.Context) ([]SystemAudit, error)) error {
	return localhost.Serve(mgr, orphans.Path, auditHandler(mgr.GetScheme(), systems))
}

const (
	auditsTake = time.Minute      // at most, those of one question
	othersTake = 20 * time.Second // how long a question waits for the answer to another one
)

func auditHandler(scheme *runtime.Scheme, systems func(ctx context.Context) ([]SystemAudit, error)) http.Handler {
	return oneAtATime("audit", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), auditsTake)
		defer cancel()
		report, err := runAudits(ctx, scheme, systems)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) //nolint:errcheck // an error means that the client has disconnected
	})
}

// oneAtATime returns a handler that answers one question after the other: audits are expensive, and a
// user may ask twice.
func oneAtATime(what string, answer http.HandlerFunc) http.Handler {
	running := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), othersTake)
		defer cancel()
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		case <-ctx.Done():
			http.Error(w, "another "+what+" is running", http.StatusServiceUnavailable)
			return
		}
		answer(w, r)
	})
}

// systemsAtOnce is how many systems are asked at the same time: one that hangs must not keep the
// others from being shown.
const systemsAtOnce = 10

func runAudits(ctx context.Context, scheme *runtime.Scheme, systems func(ctx context.Context) ([]SystemAudit, error)) (*orphans.Report, error) {
	all, err := systems(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out which systems there are: %w", err)
	}
	report := &orphans.Report{Systems: make([]orphans.System, len(all))}
	concurrently(systemsAtOnce, len(all), func(i int) {
		result := &report.Systems[i]
		err := caught(func() (err error) {
			*result, err = all[i].run(ctx, scheme)
			return err
		})
		if err != nil {
			result.Error = err.Error()
		}
		result.Name = all[i].name
	})
	report.Sort()
	return report, nil
}

// concurrently calls do with 0 to n-1, so many at once, and waits for all.
func concurrently(most, n int, do func(i int)) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range min(most, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

// caught returns a panic of a call as an error. In a goroutine of a handler it would end the operator.
func caught(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}
