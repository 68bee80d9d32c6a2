// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/language/lsp"
)

// cursor is where the cursor is in a text of a test.
const cursor = "█"

type object = map[string]any

// A diagnosis is what the server says of a document.
type diagnosis struct {
	URI         string
	Version     *int
	Diagnostics []struct {
		Range    span
		Severity int
		Code     string
		Message  string
	}
}

type place struct{ Line, Character int }

type span struct{ Start, End place }

type edit struct {
	Range   span
	NewText string
}

// An editor is a session with a server, by the messages of the protocol.
type editor struct {
	t    testing.TB
	conn *jsonrpc2.Conn
	dir  string
	done chan error // what Serve returned

	mu        sync.Mutex
	diagnosed map[string]diagnosis // the last one of each document
	news      chan struct{}        // has something after a diagnosis
	asked     []string             // requests of the server
}

// A duplex is both directions of a connection.
type duplex struct {
	io.Reader
	io.WriteCloser
}

// newEditor begins a session in a directory with files.
func newEditor(t testing.TB, loader check.Loader, capabilities object, files map[string]string) *editor {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	e := &editor{t: t, dir: dir, done: make(chan error, 1), diagnosed: map[string]diagnosis{}, news: make(chan struct{}, 1)}
	for name, text := range files {
		must(t, os.WriteFile(e.path(name), []byte(text), 0o600))
	}
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	go func() {
		err := lsp.Serve(context.Background(), serverIn, serverOut, lsp.Options{Loader: loader, Draw: draw})
		_ = serverOut.Close()
		_ = serverIn.Close()
		e.done <- err
	}()
	stream := jsonrpc2.NewBufferedStream(duplex{fromServer, toServer}, jsonrpc2.VSCodeObjectCodec{})
	e.conn = jsonrpc2.NewConn(context.Background(), stream, jsonrpc2.HandlerWithError(e.handle))
	t.Cleanup(func() {
		_ = e.conn.Close()
		select {
		case <-e.done:
		default:
		}
	})
	e.call("initialize", object{"capabilities": capabilities}, nil)
	e.notify("initialized", object{})
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// draw draws the names of managers.
func draw(w io.Writer, format string, decls []*ast.Decl) error {
	if format == "png" {
		return errors.New("no format")
	}
	for _, decl := range decls {
		fmt.Fprint(w, format, " ", decl.Name.Text)
	}
	return nil
}

func (e *editor) path(name string) string { return filepath.Join(e.dir, name) }

func (e *editor) uri(name string) string { return "file://" + filepath.ToSlash(e.path(name)) }

func (e *editor) handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.Notif {
		e.asked = append(e.asked, r.Method)
		return nil, nil
	}
	var d diagnosis
	if err := json.Unmarshal(*r.Params, &d); err != nil {
		return nil, err
	}
	e.diagnosed[d.URI] = d
	select {
	case e.news <- struct{}{}:
	default:
	}
	return nil, nil
}

func (e *editor) call(method string, params, result any) {
	e.t.Helper()
	if err := e.try(method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) try(method string, params, result any) error {
	return e.conn.Call(context.Background(), method, params, result)
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	must(e.t, e.conn.Notify(context.Background(), method, params))
}

// open opens a document, whose text may have a cursor. It returns the place of that.
func (e *editor) open(name, text string) place {
	e.t.Helper()
	before, after, _ := strings.Cut(text, cursor)
	e.notify("textDocument/didOpen", object{"textDocument": object{"uri": e.uri(name), "languageId": "ctrlkit", "version": 1, "text": before + after}})
	return endOf(before)
}

// replace replaces the whole text of a document.
func (e *editor) replace(name string, version int, text string) place {
	e.t.Helper()
	before, after, _ := strings.Cut(text, cursor)
	e.change(name, version, object{"text": before + after})
	return endOf(before)
}

func (e *editor) change(name string, version int, changes ...object) {
	e.t.Helper()
	e.notify("textDocument/didChange", object{"textDocument": object{"uri": e.uri(name), "version": version}, "contentChanges": changes})
}

// endOf returns the place after a text, in units of UTF-16.
func endOf(text string) place {
	p := place{Line: strings.Count(text, "\n")}
	for _, r := range text[strings.LastIndexByte(text, '\n')+1:] {
		p.Character++
		if r >= 0x10000 {
			p.Character++
		}
	}
	return p
}

// at are the parameters of a request about a place.
func (e *editor) at(name string, p place) object {
	return object{"textDocument": object{"uri": e.uri(name)}, "position": object{"line": p.Line, "character": p.Character}}
}

// codes waits until the server has said that a version of a document has these codes, in order.
func (e *editor) codes(name string, version int, want ...string) diagnosis {
	e.t.Helper()
	late := time.After(time.Minute)
	for {
		e.mu.Lock()
		d, ok := e.diagnosed[e.uri(name)]
		e.mu.Unlock()
		var got []string
		for _, found := range d.Diagnostics {
			got = append(got, found.Code)
		}
		if ok && d.Version != nil && *d.Version == version && strings.Join(got, " ") == strings.Join(want, " ") {
			return d
		}
		select {
		case <-e.news:
		case <-late:
			e.t.Fatalf("version %d of %s has %v, want %v", version, name, d, want)
		}
	}
}

// apply applies edits to a text, the last ones first.
func apply(text string, edits []edit) string {
	for i := len(edits) - 1; i >= 0; i-- {
		start, end := offset(text, edits[i].Range.Start), offset(text, edits[i].Range.End)
		text = text[:start] + edits[i].NewText + text[end:]
	}
	return text
}

func offset(text string, p place) int {
	start := 0
	for range p.Line {
		start += strings.IndexByte(text[start:], '\n') + 1
	}
	units := 0
	for i, r := range text[start:] {
		if units >= p.Character {
			return start + i
		}
		units++
		if r >= 0x10000 {
			units++
		}
	}
	return len(text)
}

const shop = `decl Shop for Deployment {
    state {
        // pods are the Pods of the Deployment.
        pods []Pod {
            labels/app=${target.Name}
            fields/.status.phase=Running
            owned
        }
        settings ConfigMap {
            name=${target.Name}-settings
        }
    }

    action {
        // Scale counts Pods.
        Scale(pods, settings)
        Report(pods)
    }
}
`

func TestSession(t *testing.T) {
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	if err := e.try("textDocument/nothing", object{}, nil); err == nil || !strings.Contains(err.Error(), "textDocument/nothing") {
		t.Errorf("an unknown method: %v", err)
	}
	if err := e.try("textDocument/hover", []int{1}, nil); err == nil {
		t.Error("malformed parameters: no error")
	}
	var nothing any
	e.call("textDocument/hover", e.at("none.ctrlkit", place{}), &nothing)
	if nothing != nil {
		t.Errorf("a document that is not open: %v", nothing)
	}
	e.call("shutdown", nil, nil)
	e.notify("exit", nil)
	if err := <-e.done; err != nil {
		t.Errorf("exit after shutdown: %v", err)
	}
}

func TestSessionWithoutShutdown(t *testing.T) {
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	must(t, e.conn.Close())
	if err := <-e.done; !errors.Is(err, lsp.ErrNoShutdown) {
		t.Errorf("got %v", err)
	}
}

// Mistakes come and go as one types, those of types too.
func TestDiagnostics(t *testing.T) {
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	e.open("shop.ctrlkit", shop)
	e.codes("shop.ctrlkit", 1)
	e.replace("shop.ctrlkit", 2, strings.Replace(shop, "Report(pods)", "Report(pod", 1))
	e.codes("shop.ctrlkit", 2, "CK0016", "CK0103")
	at := endOf(shop[:strings.Index(shop, "Name}-settings")])
	wrong := object{"range": span{at, place{at.Line, at.Character + 4}}, "text": "Nam"}
	e.change("shop.ctrlkit", 3, object{"text": "// 𝄞\n"}, object{"text": shop}, wrong)
	d := e.codes("shop.ctrlkit", 3, "CK0402")
	if got := d.Diagnostics[0]; got.Range.Start != at || got.Severity != 1 || !strings.Contains(got.Message, "\ndid you mean \"Name\"?") {
		t.Errorf("got %+v", got)
	}
	e.replace("shop.ctrlkit", 4, shop)
	e.codes("shop.ctrlkit", 4)
}

// A document and the ones beside it are one package: what is not open is read from its file.
func TestDiagnosticsOfSeveralDocuments(t *testing.T) {
	e := newEditor(t, checktest.Loader{}, object{}, map[string]string{"other.ctrlkit": shop})
	e.open("shop.ctrlkit", shop)
	e.codes("shop.ctrlkit", 1, "CK0101")
	must(t, os.Remove(e.path("other.ctrlkit")))
	e.notify("workspace/didChangeWatchedFiles", object{"changes": []object{{"uri": e.uri("other.ctrlkit"), "type": 3}}})
	e.codes("shop.ctrlkit", 1)
	e.notify("textDocument/didClose", object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}})
	e.call("shutdown", nil, nil)
	if d := e.diagnosed[e.uri("shop.ctrlkit")]; d.Version != nil || len(d.Diagnostics) > 0 {
		t.Errorf("a closed document has %+v", d)
	}
}

// A slowLoader loads nothing before it may.
type slowLoader struct{ may chan struct{} }

func (l slowLoader) Load(ctx context.Context, dir string, paths []string) (map[string]*check.Package, error) {
	<-l.may
	return checktest.Loader{}.Load(ctx, dir, paths)
}

// The server does not wait for packages: it says what is wrong without them, and then what is wrong
// with them.
func TestDiagnosticsWhilePackagesAreLoaded(t *testing.T) {
	l := slowLoader{make(chan struct{})}
	e := newEditor(t, l, object{}, nil)
	text := strings.Replace(shop, "Report(pods)", "Report(pod)", 1)
	text = strings.Replace(text, "${target.Name}-settings", "${target.Nam}-settings", 1)
	e.open("shop.ctrlkit", text)
	e.codes("shop.ctrlkit", 1, "CK0103")
	close(l.may)
	e.codes("shop.ctrlkit", 1, "CK0402", "CK0103")
}

// An editor may count bytes.
func TestPositionsInBytes(t *testing.T) {
	text := strings.Replace(shop, "Report(pods)", "Report(pods, été𝄞)", 1)
	for encoding, want := range map[string]int{"utf-8": 21 + 9, "utf-16": 21 + 5} {
		e := newEditor(t, checktest.Loader{}, object{"general": object{"positionEncodings": []string{encoding}}}, nil)
		e.open("shop.ctrlkit", text)
		d := e.codes("shop.ctrlkit", 1, "CK0103")
		if got := d.Diagnostics[0].Range.End.Character; got != want {
			t.Errorf("%s: the name ends at %d, want %d", encoding, got, want)
		}
	}
}

func TestWatchesFiles(t *testing.T) {
	watching := object{"workspace": object{"didChangeWatchedFiles": object{"dynamicRegistration": true}}}
	e := newEditor(t, checktest.Loader{}, watching, nil)
	e.call("shutdown", nil, nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asked) != 1 || e.asked[0] != "client/registerCapability" {
		t.Errorf("the server asked %v", e.asked)
	}
}
