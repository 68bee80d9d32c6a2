// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/ctrlkit/ctrlkit/internal/cluster/markers"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// permissions are what the operator of a workload may do.
type permissions struct {
	policy  *rbac.Policy // nil: everything
	account user.Info
}

// recorded returns the policy of a run, which records the rules that it uses; nil if everything is
// allowed.
func (p permissions) recorded() *rbac.Usage {
	if p.policy == nil {
		return nil
	}
	return p.policy.Record()
}

// authorizerOf returns what a server asks, which must not be a nil pointer.
func authorizerOf(u *rbac.Usage) authorizer.UnconditionalAuthorizer {
	if u == nil {
		return nil
	}
	return u
}

// unusedRules returns the rules for the operator that no request of the run needed.
func (r *run) unusedRules() []rbac.Grant {
	if r.usage == nil {
		return nil
	}
	return r.usage.Unused(r.account)
}

// rules returns the rules of a workload that no run without faults has used, and the files of
// controllers that have not run, with the number of rules for them alone.
func (r *reference) rules(w *Workload) (unused, unchecked []string) {
	if len(r.unused) == 0 {
		return nil, nil
	}
	c := rbac.Comparison{Unused: r.unused}
	if found, err := markers.For(w.RBAC); err == nil { // without them, all are unused
		c.Uncheck(markers.Unrun(found, r.needs))
	}
	for _, g := range c.Unused {
		unused = append(unused, g.String())
	}
	of := map[string]int{}
	for _, g := range c.Unchecked {
		of[g.Unrun]++
	}
	for _, files := range slices.Sorted(maps.Keys(of)) {
		unchecked = append(unchecked, fmt.Sprintf("%d for %s", of[files], files))
	}
	return unused, unchecked
}

// known are the permissions that were read. Every run of a workload has the same.
var known sync.Map // text to permissions

// permissionsOf reads the RBAC files of a workload, once.
func permissionsOf(w *Workload) (permissions, error) {
	if os.Getenv(RBACVariable) == withoutRBAC {
		return permissions{}, nil
	}
	if len(w.RBAC) == 0 {
		if w.ServiceAccount != "" {
			return permissions{}, errors.New("Workload.ServiceAccount has no effect without Workload.RBAC")
		}
		return permissions{}, nil
	}
	key := strings.Join(append([]string{w.ServiceAccount}, w.RBAC...), "\n")
	if p, ok := known.Load(key); ok {
		return p.(permissions), nil
	}
	policy, err := rbac.Read(w.RBAC...)
	if err != nil {
		return permissions{}, fmt.Errorf("reading Workload.RBAC: %w", err)
	}
	account, err := policy.Account(w.ServiceAccount)
	if err != nil {
		return permissions{}, fmt.Errorf("Workload.ServiceAccount: %w", err)
	}
	p := permissions{policy, account}
	known.Store(key, p)
	return p, nil
}

// refused records a request that the operator may not make.
func (r *run) refused(a authorizer.Attributes) { r.judge.Report(oracle.Allowed, rbac.Missing(a)) }
