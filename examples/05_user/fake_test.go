// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/sim"
)

// fakeMySQL is a server in a simulation. It outlives crashes of the operator. Beside the accounts,
// it knows what the operator has published, and checks after each call that a client which reads
// the Secret can log in.
type fakeMySQL struct {
	mu         sync.Mutex
	accounts   map[string]*fakeAccount
	databases  map[string]fakeDatabase
	current    *sim.Process
	passwords  int // made so far
	violations []string

	// As far as the API server has answered.
	username, password string
	publishedFor       types.UID // the User
	broken             bool      // the script has removed the account
	unanswered         bool      // a write of the Secret has no answer yet, so that both may be published
}

type fakeAccount struct {
	password string
	grants   Grants
	owner    types.UID
}

var fakeServer = sim.NewFake("mysql", func() *fakeMySQL {
	return &fakeMySQL{accounts: map[string]*fakeAccount{}, databases: map[string]fakeDatabase{}}
})

var _ sim.Lister = (*fakeMySQL)(nil)

// Resources implements sim.Lister. Both accounts of a User are one resource, which has the UID as
// its id: the simulator compares worlds in which Users have others. A violation is a resource,
// too, so that a world with one is not as it should be.
func (f *fakeMySQL) Resources() []sim.OwnedResource {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []sim.OwnedResource
	for _, name := range slices.Sorted(maps.Keys(f.accounts)) {
		account := f.accounts[name]
		if id := string(account.owner); len(all) == 0 || all[len(all)-1].ID != id {
			all = append(all, sim.OwnedResource{Owner: account.owner, Resource: sim.Resource{ID: id, Name: id, Spec: map[string]string{}}})
		}
		spec := all[len(all)-1].Spec
		spec[fmt.Sprint("account ", len(spec))] = account.grants.String() // which of both it is depends on how many passwords there were
	}
	for _, name := range slices.Sorted(maps.Keys(f.databases)) {
		d := f.databases[name]
		all = append(all, sim.OwnedResource{Owner: d.owner, Resource: sim.Resource{ID: name, Name: name, Spec: map[string]string{"characterSet": d.CharacterSet, "collation": d.Collation}}})
	}
	for _, violation := range f.violations {
		all = append(all, sim.OwnedResource{Resource: sim.Resource{ID: violation, Name: violation}})
	}
	return all
}

// dependencies returns what the operator uses in a process of a simulation.
func (f *fakeMySQL) dependencies(p *sim.Process) dependencies {
	f.note(func() { f.current = p })
	return dependencies{
		claims: "mysql-system",
		newPassword: func() string {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.passwords++ // also after a crash, so that one that was lost is never made again
			return fmt.Sprintf("%s%d", canary, f.passwords)
		},
		connect: func(ctx context.Context, login Login, object client.Object) (Accounts, error) {
			c := &fakeConnection{fake: f, process: p, owner: object.GetUID(), deleted: object.GetDeletionTimestamp() != nil}
			return c, c.call(ctx, "connect", login.Address, false, func() error {
				if login.Username != "root" || login.Password != "admin" {
					return ErrRejected
				}
				return nil
			})
		},
	}
}

// fakeConnection is a connection of one process.
type fakeConnection struct {
	fake    *fakeMySQL
	process *sim.Process
	owner   types.UID
	deleted bool // the object is being deleted
}

var _ Accounts = (*fakeConnection)(nil)

func (c *fakeConnection) call(ctx context.Context, verb, account string, mutates bool, do func() error) error {
	return c.process.Call(ctx, sim.Call{System: "mysql", Verb: verb, Mutates: mutates, Owner: c.owner, What: account}, func() error {
		c.fake.mu.Lock()
		defer c.fake.mu.Unlock()
		err := do()
		if verb == "update" || verb == "login" { // a deletion drops what is published, too
			c.check(verb)
		}
		return err
	})
}

// check records a violation if what the Secret has does not work, unless the operator could not
// help it: the script has dropped the account, or a call of a process that has crashed came late.
func (c *fakeConnection) check(verb string) {
	f := c.fake
	switch {
	case f.unanswered || c.deleted || c.owner != f.publishedFor:
	case f.isPublishedUsable():
		f.broken = false
	case c.process != f.current:
		f.broken = true
	case !f.broken:
		f.violations = append(f.violations, "the published password does not work at "+verb)
	}
}

// isPublishedUsable reports whether what the Secret has works.
func (f *fakeMySQL) isPublishedUsable() bool {
	a := f.accounts[f.username]
	return a != nil && a.password == f.password
}

func (c *fakeConnection) Grants(ctx context.Context, account string) (grants Grants, err error) {
	err = c.call(ctx, "get", account, false, func() error {
		a := c.fake.accounts[account]
		if a == nil {
			return ErrNoAccount
		}
		grants = maps.Clone(a.grants)
		return nil
	})
	return grants, err
}

func (c *fakeConnection) SetPassword(ctx context.Context, account, password string) error {
	verb := "update"
	if _, err := c.Grants(ctx, account); err != nil {
		verb = "create"
	}
	return c.call(ctx, verb, account, true, func() error {
		a := c.fake.accounts[account]
		if a == nil {
			a = &fakeAccount{owner: c.owner, grants: Grants{}}
			c.fake.accounts[account] = a
		}
		a.password = password
		c.check(verb)
		return nil
	})
}

func (c *fakeConnection) Login(ctx context.Context, account, password string) (works bool, err error) {
	err = c.call(ctx, "login", account, false, func() error {
		a := c.fake.accounts[account]
		works = a != nil && a.password == password
		return nil
	})
	return works, err
}

func (c *fakeConnection) Grant(ctx context.Context, account string, grants Grants) error {
	return c.change(ctx, account, grants, func(a *fakeAccount, on string) { a.grants.add(on, grants[on]...) })
}

func (c *fakeConnection) Revoke(ctx context.Context, account string, grants Grants) error {
	return c.change(ctx, account, grants, func(a *fakeAccount, on string) {
		if a.grants[on] = without(a.grants[on], grants[on]); len(a.grants[on]) == 0 {
			delete(a.grants, on)
		}
	})
}

// change is a call for each object of the grants, as a server has a statement for each.
func (c *fakeConnection) change(ctx context.Context, account string, grants Grants, change func(a *fakeAccount, on string)) error {
	for _, on := range slices.Sorted(maps.Keys(grants)) {
		if err := c.call(ctx, "update", account, true, func() error {
			a := c.fake.accounts[account]
			if a == nil {
				return ErrNoAccount
			}
			change(a, on)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *fakeConnection) Drop(ctx context.Context, account string) error {
	return c.call(ctx, "delete", account, true, func() error { delete(c.fake.accounts, account); return nil })
}

type fakeDatabase struct {
	Settings
	owner types.UID
}

func (c *fakeConnection) Databases(ctx context.Context) (names []string, err error) {
	err = c.call(ctx, "list", "databases", false, func() error {
		names = slices.Sorted(maps.Keys(c.fake.databases))
		return nil
	})
	return names, err
}

func (c *fakeConnection) Database(ctx context.Context, name string) (s Settings, err error) {
	err = c.call(ctx, "get", name, false, func() error {
		d, ok := c.fake.databases[name]
		if s = d.Settings; !ok {
			return ErrNoDatabase
		}
		return nil
	})
	return s, err
}

func (c *fakeConnection) CreateDatabase(ctx context.Context, name string, s Settings) error {
	return c.call(ctx, "create", name, true, func() error {
		if _, ok := c.fake.databases[name]; ok {
			return external.Refused(errors.New("there is one of that name"))
		}
		c.fake.databases[name] = fakeDatabase{Settings{cmp.Or(s.CharacterSet, "utf8mb4"), cmp.Or(s.Collation, "utf8mb4_bin")}, c.owner}
		return nil
	})
}

func (c *fakeConnection) AlterDatabase(ctx context.Context, name string, s Settings) error {
	return c.call(ctx, "update", name, true, func() error {
		d, ok := c.fake.databases[name]
		if !ok {
			return ErrNoDatabase
		}
		d.CharacterSet, d.Collation = cmp.Or(s.CharacterSet, d.CharacterSet), cmp.Or(s.Collation, d.Collation)
		c.fake.databases[name] = d
		return nil
	})
}

func (c *fakeConnection) Tables(context.Context, string) (int, error) { return 0, nil }

func (c *fakeConnection) DropDatabase(ctx context.Context, name string) error {
	return c.call(ctx, "delete", name, true, func() error { delete(c.fake.databases, name); return nil })
}

func (c *fakeConnection) Target(database, table string) string {
	return (&mysqlAccounts{}).Target(database, table)
}

func (c *fakeConnection) Version() string { return "fake" }
func (c *fakeConnection) Close() error    { return nil }

// recording is a transport that records what is published.
type recording struct {
	http.RoundTripper
	fake *fakeMySQL
	name string // of the Secret
}

func (r recording) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/secrets/"+r.name) {
		return r.RoundTripper.RoundTrip(request)
	}
	if request.Method != http.MethodGet {
		r.fake.note(func() { r.fake.unanswered = true })
	}
	response, err := r.RoundTripper.RoundTrip(request)
	if err != nil {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if secret, ok := obj.(*corev1.Secret); ok {
			r.fake.note(func() {
				if request.Method == http.MethodGet && !r.fake.unanswered && string(secret.Data["password"]) != r.fake.password {
					r.fake.broken = true // a write of a process that has crashed came late; the account follows
				}
				r.fake.username, r.fake.password, r.fake.unanswered = string(secret.Data["username"]), string(secret.Data["password"]), false
				r.fake.publishedFor = ""
				if owner := metav1.GetControllerOf(secret); owner != nil {
					r.fake.publishedFor = owner.UID
				}
			})
		}
	}
	return response, nil
}

func (f *fakeMySQL) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}
