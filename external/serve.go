// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/orphans"
	"github.com/ctrlkit/ctrlkit/journal"
)

// AuditPath is where an operator serves its audits, below the address of its metrics.
const AuditPath = orphans.Path

// A SystemAudit is the audit of one external system, made by [AuditOf].
type SystemAudit struct {
	name string
	run  func(ctx context.Context, scheme *runtime.Scheme) (orphans.System, error)
}

// AuditOf returns the audit of a system, whose name is for people: its address. System and objects
// are as for [Audit], which is called when a user asks for it.
func AuditOf[T client.Object](name string, system Lister, objects func(ctx context.Context) ([]T, error)) SystemAudit {
	return SystemAudit{name, func(ctx context.Context, scheme *runtime.Scheme) (orphans.System, error) {
		found, err := Audit(ctx, system, objects)
		if err != nil {
			return orphans.System{}, err
		}
		var result orphans.System
		for _, r := range found.Orphans {
			result.Orphans = append(result.Orphans, orphans.Resource{ID: r.ID, Owner: r.Owner})
		}
		for _, obj := range found.Missing {
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
	return mgr.AddMetricsServerExtraHandler(AuditPath, auditHandler(mgr.GetScheme(), systems))
}

// auditsTake is the most that the audits of one question take.
const auditsTake = time.Minute

func auditHandler(scheme *runtime.Scheme, systems func(ctx context.Context) ([]SystemAudit, error)) http.Handler {
	return oneAtATime(func(ctx context.Context, _ *http.Request) (any, error) { return runAudits(ctx, scheme, systems) })
}

// errQuestion says that the question is wrong.
var errQuestion = errors.New("wrong question")

// oneAtATime returns a handler that answers one question after the other, with JSON: audits are
// expensive, and a user may ask twice.
func oneAtATime(answer func(ctx context.Context, r *http.Request) (any, error)) http.Handler {
	running := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), auditsTake)
		defer cancel()
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		case <-ctx.Done():
			http.Error(w, "another audit is running", http.StatusServiceUnavailable)
			return
		}
		report, err := answer(ctx, r)
		if err != nil {
			code := http.StatusInternalServerError
			if errors.Is(err, errQuestion) {
				code = http.StatusBadRequest
			}
			http.Error(w, err.Error(), code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) //nolint:errcheck // an error means that the client has disconnected
	})
}

func runAudits(ctx context.Context, scheme *runtime.Scheme, systems func(ctx context.Context) ([]SystemAudit, error)) (*orphans.Report, error) {
	all, err := systems(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out which systems there are: %w", err)
	}
	report := &orphans.Report{Systems: []orphans.System{}}
	for _, audit := range all {
		result, err := audit.run(ctx, scheme)
		if err != nil {
			result.Error = err.Error()
		}
		result.Name = audit.name
		report.Systems = append(report.Systems, result)
	}
	report.Sort()
	return report, nil
}
