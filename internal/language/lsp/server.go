// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// ErrNoShutdown is the error of [Serve] for an editor that ends without the request shutdown.
var ErrNoShutdown = errors.New("the editor ended without shutting the server down")

// Options are what the server has from others.
type Options struct {
	// Loader loads Go packages. The server calls it beside its answers.
	Loader check.Loader
	// Draw writes a picture of managers in a format.
	Draw func(w io.Writer, format string, decls []*ast.Decl) error
}

// Serve answers an editor until it says exit, closes in, or ctx is done. Messages have the header
// Content-Length, as the protocol has them on standard input and output.
func Serve(ctx context.Context, in io.Reader, out io.Writer, options Options) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{ctx: ctx, workspace: newWorkspace(options), exit: make(chan struct{})}
	defer s.workspace.packages.running.Wait()
	defer s.loading.Wait()
	defer cancel()
	s.workspace.packages.loaded = s.loaded
	answers := newOutbox(out)
	stream := jsonrpc2.NewBufferedStream(&pipe{in, answers}, jsonrpc2.VSCodeObjectCodec{})
	// The handler returns only after it has answered: requests are answered in the order in which
	// they come, except those that load packages.
	s.mu.Lock()
	s.conn = jsonrpc2.NewConn(ctx, stream, s)
	s.mu.Unlock()
	defer s.conn.Close() //nolint:errcheck // nothing is left to be written
	select {
	case <-ctx.Done():
		return ctx.Err() // what has not been written is lost
	case <-s.exit:
	case <-s.conn.DisconnectNotify():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := answers.Close(); err != nil && s.shutdown {
		return fmt.Errorf("answering the editor: %w", err)
	}
	if !s.shutdown {
		return ErrNoShutdown
	}
	return nil
}

// A pipe is the connection to the editor, which the caller of Serve has opened and closes.
type pipe struct {
	io.Reader
	io.Writer
}

func (*pipe) Close() error { return nil }

// A server is one session with an editor.
type server struct {
	ctx  context.Context //nolint:containedctx // that of the session, for what is loaded beside the requests
	exit chan struct{}
	// loading are the requests that load packages.
	loading sync.WaitGroup

	// mu is held while a message is handled, and while packages that have been loaded are taken over.
	mu        sync.Mutex
	conn      *jsonrpc2.Conn
	workspace *workspace
	watches   bool // the editor can be asked to report changes of files
	shutdown  bool
}

// requests are the methods that return something, by name.
var requests = map[string]func(*server, json.RawMessage) (any, error){
	"initialize":                  request((*server).initialize),
	"shutdown":                    request((*server).shutDown),
	"textDocument/formatting":     about((*workspace).formatting),
	"textDocument/documentSymbol": about((*workspace).symbols),
	"textDocument/hover":          about((*workspace).hover),
	"textDocument/completion":     about((*workspace).completion),
	"textDocument/definition":     request((*server).definition),
	"textDocument/implementation": request((*server).definition),
	"textDocument/references":     request((*server).references),
	"textDocument/prepareRename":  about((*workspace).prepareRename),
	"textDocument/rename":         request((*server).rename),
	"textDocument/codeAction":     request((*server).codeActions),
	"workspace/executeCommand":    request((*server).command),
}

// notifications are the methods that return nothing, by name.
var notifications = map[string]func(*server, json.RawMessage) (any, error){
	"initialized":                     request((*server).initialized),
	"exit":                            request((*server).exitNow),
	"textDocument/didOpen":            request((*server).didOpen),
	"textDocument/didChange":          request((*server).didChange),
	"textDocument/didClose":           request((*server).didClose),
	"textDocument/didSave":            request((*server).didSave),
	"workspace/didChangeWatchedFiles": request((*server).didChangeWatchedFiles),
}

// request returns a method that reads its parameters.
func request[P any](do func(*server, P) (any, error)) func(*server, json.RawMessage) (any, error) {
	return func(s *server, raw json.RawMessage) (any, error) {
		var params P
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &params); err != nil {
				return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
			}
		}
		return do(s, params)
	}
}

// about returns a method about a place in a document that is open. For another one it returns
// nothing.
func about[R any](do func(*workspace, *document, *directory, int) (R, error)) func(*server, json.RawMessage) (any, error) {
	return request(func(s *server, p documentParams) (any, error) {
		d, dir := s.workspace.find(pathOf(p.TextDocument.URI))
		if d == nil {
			return nil, nil
		}
		return do(s.workspace, d, dir, d.offset(p.Position))
	})
}

// A later is the result of a request that takes seconds. It is called without the lock, so that
// other messages are handled in the meantime.
type later func() (any, error)

// Handle implements [jsonrpc2.Handler].
func (s *server) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	result, err := s.handle(r)
	answer := jsonrpc2.HandlerWithError(func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) (any, error) {
		return result, asError(err)
	})
	wait, ok := result.(later)
	if !ok {
		answer.Handle(ctx, conn, r)
		return
	}
	s.loading.Go(func() {
		result, err = wait()
		answer.Handle(ctx, conn, r)
	})
}

// handle returns the answer to a message.
func (s *server) handle(r *jsonrpc2.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	methods := requests
	if r.Notif {
		methods = notifications
	}
	do := methods[r.Method]
	if do == nil {
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: fmt.Sprintf("ctrlkit lsp has no method %q", r.Method)}
	}
	var params json.RawMessage
	if r.Params != nil {
		params = *r.Params
	}
	return do(s, params)
}

// asError returns an error as the protocol has it.
func asError(err error) error {
	if err == nil || errors.As(err, new(*jsonrpc2.Error)) {
		return err
	}
	return &jsonrpc2.Error{Code: codeRequestFailed, Message: err.Error()}
}

const (
	// codeRequestFailed is the protocol's code for a request that is right and cannot be answered.
	codeRequestFailed = -32803
	// codeContentModified is its code for one about a text that has changed.
	codeContentModified = -32801
)

func (s *server) initialize(p initializeParams) (any, error) {
	encoding := "utf-16"
	if slices.Contains(p.Capabilities.General.PositionEncodings, "utf-8") {
		encoding, s.workspace.utf8 = "utf-8", true
	}
	s.watches = p.Capabilities.Workspace.DidChangeWatchedFiles.DynamicRegistration
	type object map[string]any
	return object{
		"serverInfo": object{"name": "ctrlkit"},
		"capabilities": object{
			"positionEncoding":           encoding,
			"textDocumentSync":           object{"openClose": true, "change": 2, "save": true},
			"documentFormattingProvider": true,
			"documentSymbolProvider":     true,
			"hoverProvider":              true,
			"completionProvider":         object{"triggerCharacters": []string{".", "{", "/", "(", ",", "="}},
			"definitionProvider":         true,
			"implementationProvider":     true,
			"referencesProvider":         true,
			"renameProvider":             object{"prepareProvider": true},
			"codeActionProvider":         object{"codeActionKinds": []string{"quickfix", "refactor"}},
			"executeCommandProvider":     object{"commands": []string{drawingCommand}},
		},
	}, nil
}

// initialized asks the editor to report changes of the files that documents depend on.
func (s *server) initialized(struct{}) (any, error) {
	if !s.watches {
		return nil, nil
	}
	type object map[string]any
	var watchers []object
	for _, pattern := range []string{"**/*.go", "**/go.mod", "**/*.ctrlkit", "**/*.cm", "**/*.yaml"} {
		watchers = append(watchers, object{"globPattern": pattern})
	}
	registration := object{"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": object{"watchers": watchers}}
	_, err := s.conn.DispatchCall(s.ctx, "client/registerCapability", object{"registrations": []object{registration}})
	return nil, err
}

func (s *server) shutDown(struct{}) (any, error) {
	s.shutdown = true
	return nil, nil
}

func (s *server) exitNow(struct{}) (any, error) {
	select {
	case <-s.exit:
	default:
		close(s.exit)
	}
	return nil, nil
}

func (s *server) definition(p documentParams) (any, error) {
	return s.workspace.definition(s.ctx, p), nil
}

func (s *server) references(p referenceParams) (any, error) {
	return s.workspace.references(s.ctx, p), nil
}

func (s *server) rename(p renameParams) (any, error) {
	edit, inGo, err := s.workspace.rename(s.ctx, p)
	if err != nil || inGo == nil {
		return edit, err
	}
	return later(func() (any, error) {
		if err := inGo.load(s.ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		all, err := inGo.all()
		maps.Copy(edit.Changes, all)
		return edit, err
	}), nil
}

func (s *server) codeActions(p codeActionParams) (any, error) {
	return s.workspace.codeActions(s.ctx, p), nil
}

func (s *server) command(p commandParams) (any, error) { return s.workspace.command(p) }

func (s *server) didOpen(p openParams) (any, error) {
	s.publish(s.workspace.open(s.ctx, p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text))
	return nil, nil
}

func (s *server) didChange(p changeParams) (any, error) {
	s.publish(s.workspace.change(s.ctx, pathOf(p.TextDocument.URI), p.TextDocument.Version, p.ContentChanges))
	return nil, nil
}

// didClose takes the diagnostics of the document away.
func (s *server) didClose(p documentParams) (any, error) {
	if strings.HasSuffix(p.TextDocument.URI, ".go") {
		return nil, nil
	}
	s.publish(s.workspace.close(s.ctx, pathOf(p.TextDocument.URI)))
	return nil, s.conn.Notify(s.ctx, "textDocument/publishDiagnostics", diagnosticsParams{URI: p.TextDocument.URI, Diagnostics: []diagnostic{}})
}

func (s *server) didSave(p documentParams) (any, error) {
	s.publish(s.workspace.changedOnDisk(s.ctx, []string{pathOf(p.TextDocument.URI)})...)
	return nil, nil
}

func (s *server) didChangeWatchedFiles(p watchedFilesParams) (any, error) {
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, pathOf(c.URI))
	}
	s.publish(s.workspace.changedOnDisk(s.ctx, paths)...)
	return nil, nil
}

// loaded takes over packages that have been loaded.
func (s *server) loaded(root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(s.workspace.loaded(s.ctx, root)...)
}

// publish reports what is wrong with documents to the editor.
func (s *server) publish(dirs ...*directory) {
	for _, dir := range dirs {
		if dir == nil {
			continue
		}
		for _, p := range dir.diagnostics() {
			// An editor that is gone ends the session: Serve waits for that.
			_ = s.conn.Notify(s.ctx, "textDocument/publishDiagnostics", p)
		}
	}
}
