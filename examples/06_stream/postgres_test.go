// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

// Streams kept in tables of PostgreSQL, in each class of identity: an object that names the stream of
// another object neither changes nor deletes it, unless that one gives it.
func TestStreamsInPostgreSQL(t *testing.T) {
	db := startPostgreSQL(t)
	for _, class := range []string{"name", "token", "tag", "none"} {
		for _, owners := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/owners=%v", class, owners), func(t *testing.T) {
				_, err := db.ExecContext(t.Context(), `TRUNCATE streams CASCADE`)
				exampletest.Must(t, err)
				p := startTables(t, tables{db, class, owners})
				p.checkOwnership(t)
			})
		}
	}
}

// tables are the streams of a server, and the connector to it.
type tables struct {
	db     *sql.DB
	class  string
	owners bool // the owner of a stream is stored with it
}

const schema = `
CREATE TABLE streams (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE, token text UNIQUE, tag text, owner text, subjects text NOT NULL);
CREATE TABLE messages (stream bigint NOT NULL REFERENCES streams ON DELETE CASCADE, text text NOT NULL)`

func (p tables) Connect(context.Context, *step.Request[*v1.Stream]) (external.Client[*v1.Stream], error) {
	return p, nil
}

func (p tables) identity() external.Identity[*v1.Stream] {
	switch p.class {
	case "name":
		return external.ByName(func(obj *v1.Stream) (string, error) { return obj.Spec.Name, nil })
	case "token":
		return external.ByToken[*v1.Stream]()
	case "tag":
		return external.ByTag[*v1.Stream](time.Second)
	}
	return external.ByNothing[*v1.Stream]()
}

// key is the column that has what identifies a stream, as text.
func (p tables) key() string {
	if p.class == "name" {
		return "name"
	}
	return "id::text"
}

func (p tables) Observe(ctx context.Context, obj *v1.Stream, id string) (external.Observation, error) {
	seen := external.Observation{State: external.UpToDate}
	var subjects string
	err := p.db.QueryRowContext(ctx, "SELECT subjects, coalesce(owner, '') FROM streams WHERE "+p.key()+" = $1", id).Scan(&subjects, &seen.Owner)
	switch {
	case err == sql.ErrNoRows:
		return external.Observation{State: external.Absent}, nil
	case subjects != strings.Join(obj.Spec.Subjects, ","):
		seen.State, seen.Drift = external.Drifted, []string{"spec.subjects"}
	case seen.Owner != p.owner(obj):
		seen.State, seen.Drift = external.Drifted, []string{"owner"}
	}
	return seen, err
}

func (p tables) owner(obj *v1.Stream) string {
	if p.owners {
		return external.OwnerOf(obj)
	}
	return ""
}

func (p tables) Create(ctx context.Context, obj *v1.Stream, as external.Creation) (id string, err error) {
	null := func(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
	err = p.db.QueryRowContext(ctx, `INSERT INTO streams (name, token, tag, owner, subjects) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (token) DO UPDATE SET token = EXCLUDED.token RETURNING `+p.key(),
		null(as.Name), null(as.Token), null(as.Tag), null(p.owner(obj)), strings.Join(obj.Spec.Subjects, ",")).Scan(&id)
	return id, err
}

func (p tables) Find(ctx context.Context, _ *v1.Stream, tag string) (id string, err error) {
	if err = p.db.QueryRowContext(ctx, "SELECT id::text FROM streams WHERE tag = $1", tag).Scan(&id); err == sql.ErrNoRows {
		return "", nil
	}
	return id, err
}

func (p tables) Update(ctx context.Context, obj *v1.Stream, id string) error {
	_, err := p.db.ExecContext(ctx, "UPDATE streams SET subjects = $2, owner = nullif($3, '') WHERE "+p.key()+" = $1", id, strings.Join(obj.Spec.Subjects, ","), p.owner(obj))
	return err
}

func (p tables) Delete(ctx context.Context, _ *v1.Stream, id string) error {
	_, err := p.db.ExecContext(ctx, "DELETE FROM streams WHERE "+p.key()+" = $1", id)
	return err
}

// state returns all streams with their messages.
func (p tables) state(t *testing.T) string {
	t.Helper()
	rows, err := p.db.QueryContext(t.Context(), "SELECT s::text || ' ' || coalesce(string_agg(m.text, ','), '') FROM streams s LEFT JOIN messages m ON m.stream = s.id GROUP BY s.id ORDER BY s.id")
	exampletest.Must(t, err)
	defer rows.Close() //nolint:errcheck // only read from
	var all []string
	for rows.Next() {
		var row string
		exampletest.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	exampletest.Must(t, rows.Err())
	return strings.Join(all, "\n")
}

// A tablesTest is an operator of streams in tables, on a real control plane.
type tablesTest struct {
	*exampletest.Cluster
	tables
}

func startTables(t *testing.T, p tables) tablesTest {
	t.Helper()
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	if !p.owners {
		letClaim(t, c)
	}
	config, options := c.Operator(t, "stream")
	options.Scheme = simScheme(t)
	mgr, err := ctrl.NewManager(config, options)
	exampletest.Must(t, err)
	engine, err := step.New(step.Options[*v1.Stream]{
		Name: "stream", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("stream-operator"),
	}, external.New("Stream", p, external.Options[*v1.Stream]{
		Identity: p.identity(), StoresOwner: p.owners, ClaimNamespace: c.Namespace, Poll: time.Second, Busy: time.Second,
	}))
	exampletest.Must(t, err)
	exampletest.Must(t, engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Stream{})))
	exampletest.Run(t, mgr)
	return tablesTest{c, p}
}

// letClaim lets the operator have its claims in the namespace of the cluster. That of streams in
// NATS needs none.
func letClaim(t *testing.T, c *exampletest.Cluster) {
	t.Helper()
	exampletest.Must(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: c.In("claims"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "create", "update", "delete"}},
	}}))
	exampletest.Must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: c.In("claims"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "claims"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "stream-system", Name: "stream-operator"}},
	}))
}

// add creates a Stream, which names the resource with an id if there is one.
func (p tablesTest) add(t *testing.T, name, id string) *v1.Stream {
	t.Helper()
	obj := &v1.Stream{ObjectMeta: p.In(name), Spec: v1.StreamSpec{Name: "ORDERS", Subjects: []string{name}}}
	if id != "" {
		obj.Annotations = map[string]string{external.IDAnnotation: id}
	}
	exampletest.Must(t, p.Add(t.Context(), obj))
	return obj
}

// checkOwnership lets a Stream name that of another one, with each word that it has, and be deleted:
// nothing is changed. What its owner gives it, it takes.
func (p tablesTest) checkOwnership(t *testing.T) {
	p.add(t, "giver", "")
	giver := exampletest.Await(t, p.Cluster, "giver", exampletest.Ready[*v1.Stream])
	id := external.IDOf(giver)
	_, err := p.db.ExecContext(t.Context(), "INSERT INTO messages SELECT id, 'a message' FROM streams")
	exampletest.Must(t, err)
	before := p.state(t)

	taker := p.add(t, "taker", id)
	p.refused(t, "taker")
	p.Patch(t, taker, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, "external.ctrlkit.dev/adopt-from", giver.UID))
	p.refused(t, "taker")
	exampletest.Must(t, p.Cluster.Delete(t.Context(), taker))
	p.Gone(t, taker)
	if after := p.state(t); after != before {
		t.Errorf("what a taker has made of\n%s\nis\n%s", before, after)
	}

	heir := p.add(t, "heir", id)
	p.refused(t, "heir")
	p.Patch(t, giver, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, "external.ctrlkit.dev/give-to", heir.UID))
	exampletest.Await(t, p.Cluster, "heir", exampletest.Ready[*v1.Stream])
	exampletest.Must(t, p.Cluster.Delete(t.Context(), giver))
	p.Gone(t, giver)
	if after := p.state(t); !strings.Contains(after, "heir") || !strings.Contains(after, "a message") {
		t.Errorf("given to heir, and the giver is deleted: %s", after)
	}
	exampletest.Must(t, p.Cluster.Delete(t.Context(), heir))
	p.Gone(t, heir)
	if after := p.state(t); after != "" {
		t.Errorf("the owner is deleted: %s", after)
	}
}

// refused waits until a Stream is refused the stream of another one. No remedy offers to take it.
func (p tablesTest) refused(t *testing.T, name string) {
	t.Helper()
	now := exampletest.Await(t, p.Cluster, name, func(s *v1.Stream) bool {
		return meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, condition.Stalled, metav1.ConditionTrue)
	})
	if got := meta.FindStatusCondition(now.Status.Conditions, condition.Stalled); got.Reason != "BelongsToAnother" || strings.Contains(got.Message, "annotation") {
		t.Errorf("%s is %s: %s", name, got.Reason, got.Message)
	}
}

// startPostgreSQL starts a server as an ordinary process, with its data in a temporary directory.
// A test without one is left to make explore, which needs it.
func startPostgreSQL(t *testing.T) *sql.DB {
	t.Helper()
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // where Debian has it
	bin := ""
	if path, err := exec.LookPath("initdb"); err == nil {
		bin = filepath.Dir(path)
	} else if len(installed) > 0 {
		bin = slices.Max(installed)
	} else {
		rings.Explore(t, "needs PostgreSQL, which is not installed: on Debian, apt-get install postgresql")
		t.Fatal("PostgreSQL is not installed: on Debian, apt-get install postgresql has it")
	}
	directory, err := os.MkdirTemp("", "postgres") // the path of a socket is short
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	as := unprivileged(t, directory)
	data := filepath.Join(directory, "data")
	initdb := exec.CommandContext(t.Context(), filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	initdb.Dir, initdb.SysProcAttr = directory, as
	if output, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, output)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	exampletest.Must(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	exampletest.Must(t, listener.Close())
	server := exec.CommandContext(t.Context(), filepath.Join(bin, "postgres"), "-D", data, "-p", port, "-k", directory, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
	server.Dir, server.SysProcAttr = directory, as
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) } // disconnects its clients
	server.WaitDelay = 10 * time.Second
	var said strings.Builder
	server.Stderr = &said
	exampletest.Must(t, server.Start())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Wait() }()
	t.Cleanup(func() { <-stopped })
	db, err := sql.Open("pgx", "postgres://postgres@127.0.0.1:"+port+"/postgres")
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err = db.ExecContext(t.Context(), schema); err == nil {
			return db
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL does not answer: %v\n%s", err, said.String())
		}
	}
}

// unprivileged returns how to start a process that root may not run, and gives it a directory.
func unprivileged(t *testing.T, directory string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	other, err := user.Lookup("postgres")
	if err != nil {
		other, err = user.Lookup("daemon")
	}
	exampletest.Must(t, err)
	uid, err := strconv.ParseUint(other.Uid, 10, 32)
	exampletest.Must(t, err)
	gid, err := strconv.ParseUint(other.Gid, 10, 32)
	exampletest.Must(t, err)
	exampletest.Must(t, os.Chown(directory, int(uid), int(gid)))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
