// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

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
func (r *run) unusedRules() []string {
	if r.usage == nil {
		return nil
	}
	return r.usage.Unused(r.account)
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
