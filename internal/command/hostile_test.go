// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets/secretstest"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	simreport "github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

// withoutHostileText are the commands that show nothing of others, with the reason.
var withoutHostileText = map[string]string{
	"":                          "it prints its help",
	"completion":                "it prints its help",
	"completion bash":           "it prints a script of its own",
	"completion fish":           "it prints a script of its own",
	"completion powershell":     "it prints a script of its own",
	"completion zsh":            "it prints a script of its own",
	"controlplane":              "it prints its help",
	"create":                    "it prints its help",
	"create api":                "it writes files, of words that it has checked",
	"help":                      "it prints the help of others",
	"lsp":                       "an editor shows what it answers, as JSON and not on a terminal",
	"init":                      "it writes files, of words that it has checked",
	"version":                   "it prints what it was built from",
	"controlplane build":        "it compiles programs",
	"controlplane start":        "it starts programs of its own",
	"controlplane env":          "it prints paths",
	"fix":                       "it rewrites the Go code of who runs it",
	"vet":                       "it prints what go vet says of the code of who runs it",
	"rbac":                      "it prints what the tests of who runs it have needed",
	"sim":                       "its report is that of sim report",
	"run":                       "internal/sim/run has tests with hostile objects and logs",
	"generate finalizer-policy": "it writes a manifest of words that it has checked",
	"finalizer-policy":          "it writes a manifest of words that it has checked",
}

// A printed text is what a command, a page or an endpoint has shown.
type printed struct {
	what, format, text string
}

// hostileRows are how the other commands show the hostile cluster, with each format that they have.
var hostileRows = map[string]func(*testing.T, *hostileCluster) []printed{
	"explain": func(t *testing.T, c *hostileCluster) []printed {
		secret := []string{"explain", "secret/main-token", "-n", "vaults", "--endpoint", noEndpoint}
		return slices.Concat(
			c.each(t, []string{"text", "json"}, "explain", "vault/main", "-n", "vaults", "--endpoint", noEndpoint),
			c.each(t, []string{"text", "json"}, "explain", "vault/main", "-n", "vaults", "--endpoint", c.operator),
			c.each(t, []string{"text", "json"}, "explain", "--all", vaultKindName, "-n", "vaults", "--endpoint", noEndpoint),
			c.each(t, []string{"text", "json"}, secret...),
		)
	},
	"top": func(t *testing.T, c *hostileCluster) []printed {
		return slices.Concat(
			c.each(t, []string{"text", "json"}, "top", "--kind", vaultKindName, "--endpoint", noEndpoint),
			c.each(t, []string{"text", "json"}, "top", "--endpoint", c.operator),
		)
	},
	"record": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{
			c.run(t, "yaml", "record", "-o", "-", "-n", "vaults", "--endpoint", noEndpoint),
			c.run(t, "yaml", "record", "-o", "-", "vault/main", "-n", "vaults", "--endpoint", c.operator),
		}
	},
	"plan": func(t *testing.T, c *hostileCluster) []printed {
		return c.plans(t, "plan", "vaults", "--from", c.file(t), "-f", c.change(t))
	},
	"diff": func(t *testing.T, c *hostileCluster) []printed {
		return c.plans(t, "diff", "vaults", "vaults", "--from", c.file(t))
	},
	"replay": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{c.execute(t, "text", "replay", c.recording(t), "vaults"), c.execute(t, "json", "replay", c.recording(t), "vaults", "-o", "json")}
	},
	"orphans": func(t *testing.T, c *hostileCluster) []printed {
		return c.each(t, []string{"text", "json"}, "orphans", "--endpoint", c.operator)
	},
	"import": func(t *testing.T, c *hostileCluster) []printed {
		return c.each(t, []string{"yaml", "json"}, "import", "--endpoint", c.operator)
	},
	"view": func(t *testing.T, c *hostileCluster) []printed { return c.pages(t) },
	"sim report": func(t *testing.T, c *hostileCluster) []printed {
		page := filepath.Join(t.TempDir(), "report.html")
		shown := c.each(t, []string{"text", "json"}, "sim", "report", c.report(t), "--html", page)
		content, err := os.ReadFile(page)
		must(t, err)
		return append(shown, printed{"the page", "html", string(content)})
	},
	"check": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{c.run(t, "text", "check", c.document(t))}
	},
	"fmt": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{c.run(t, "text", "fmt", c.document(t))}
	},
	"generate": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{c.run(t, "text", "generate", c.document(t))}
	},
	"graph": func(t *testing.T, c *hostileCluster) []printed {
		return []printed{c.run(t, "text", "graph", c.document(t))}
	},
}

const vaultKindName = "vaults.recorded.ctrlkit.dev"

// No command shows a control character, a mark of direction, an element of HTML or a line of
// others, nor a value of a Secret, whatever is in the cluster, in a file or in the answer of an
// operator: each command, in each format, and each page and endpoint of an operator.
func TestNoCommandShowsHostileText(t *testing.T) {
	rings.Test(t, "runs operators")
	c := newHostileCluster(t)
	walk(New(), func(cmd *cobra.Command) {
		path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
		row := hostileRows[path]
		if row == nil {
			if withoutHostileText[path] == "" {
				t.Errorf("%q shows hostile text, or not? Give it a row, or the reason why it has none", path)
			}
			return
		}
		t.Run(path, func(t *testing.T) {
			for _, p := range row(t, c) {
				p.check(t)
			}
		})
	})
	for _, p := range c.endpoints(t) {
		p.check(t)
	}
}

// inMarkdown matches what is a link, a picture or an element in Markdown.
var inMarkdown = regexp.MustCompile(`(?m)(?:^|[^\\])[\[<]`)

// check checks that nothing of others acts.
func (p printed) check(t *testing.T) {
	t.Helper()
	if p.text == "" {
		t.Errorf("%s shows nothing", p.what)
	}
	if !utf8.ValidString(p.text) || !printable.Is(strings.ReplaceAll(p.text, "\t", "")) {
		t.Errorf("%s shows characters that act: %q", p.what, excerptOf(p.text, strings.IndexFunc(p.text, func(r rune) bool { return r != '\n' && r != '\t' && printable.Acts(r) })))
	}
	for line := range strings.Lines(p.text) {
		if strings.HasPrefix(line, "FORGED") && p.format != "html" { // there, its ends mean nothing
			t.Errorf("%s shows a line of others: %q", p.what, line)
		}
	}
	for _, canary := range secretstest.Canaries {
		for name, form := range secretstest.Forms {
			if at := strings.Index(p.text, form(canary)); at >= 0 {
				t.Errorf("%s shows a value of a Secret, as %s: %q", p.what, name, excerptOf(p.text, at))
			}
		}
	}
	switch p.format {
	case "json":
		if !json.Valid([]byte(p.text)) {
			t.Errorf("%s is no JSON: %q", p.what, excerptOf(p.text, 0))
		}
	case "html":
		for _, markup := range []string{"<img src=x", "<script>FORGED", `" onmouseover="FORGED`, `href="javascript:`} {
			if at := strings.Index(p.text, markup); at >= 0 {
				t.Errorf("%s has markup of others: %q", p.what, excerptOf(p.text, at))
			}
		}
	case "markdown":
		parts := strings.Split(p.text, "```")
		if len(parts) != 3 {
			t.Fatalf("%s has %d fences, want 2", p.what, len(parts)-1)
		}
		if at := inMarkdown.FindStringIndex(parts[0] + parts[2]); at != nil {
			t.Errorf("%s has markup of others: %q", p.what, excerptOf(parts[0]+parts[2], at[0]))
		}
	}
}

func excerptOf(text string, at int) string { return text[max(0, at-40):min(len(text), max(at, 0)+120)] }

// run runs a command as Main does.
func (c *hostileCluster) run(t *testing.T, format string, args ...string) printed {
	t.Helper()
	var out, errs bytes.Buffer
	root := New()
	if used, _, err := root.Find(args); err == nil && used.Flags().Lookup("kubeconfig") != nil {
		args = append(args, "--kubeconfig", c.kubeconfig)
	}
	root.SetArgs(args)
	root.SetOut(printable.NewWriter(&out))
	root.SetErr(printable.NewWriter(&errs))
	used, err := root.ExecuteContextC(t.Context())
	report(printable.NewWriter(&errs), used, err)
	return c.printed(t, format, args, out.String(), errs.String())
}

// printed returns what a command has printed, of which the errors are a text in any format.
func (c *hostileCluster) printed(t *testing.T, format string, args []string, out, errs string) printed {
	t.Helper()
	what := strings.Join(args, " ")
	(printed{what + " (errors)", "text", errs + " "}).check(t)
	if out == "" && format == "text" {
		out = errs
	}
	if out == "" {
		t.Fatalf("%s: %.2000s", what, errs)
	}
	return printed{what, format, out}
}

// each runs a command with each format.
func (c *hostileCluster) each(t *testing.T, formats []string, args ...string) []printed {
	t.Helper()
	var all []printed
	for _, format := range formats {
		all = append(all, c.run(t, format, append(slices.Clone(args), "-o", format)...))
	}
	return all
}

// execute runs a command that starts operators, which it does as a process.
func (c *hostileCluster) execute(t *testing.T, format string, args ...string) printed {
	t.Helper()
	args = append(args, "--outside", "--quiet", "1s", "--all", "--", "mended")
	cmd := exec.CommandContext(t.Context(), "ctrlkit", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // a change has an exit code
	return c.printed(t, format, args, out.String(), errs.String())
}

func (c *hostileCluster) plans(t *testing.T, args ...string) []printed {
	t.Helper()
	var all []printed
	for _, format := range []string{"text", "markdown", "json"} {
		all = append(all, c.execute(t, format, append(slices.Clone(args), "-o", format)...))
	}
	return all
}

// pages returns each page about the cluster alone, and about an operator.
func (c *hostileCluster) pages(t *testing.T) []printed {
	t.Helper()
	page, err := view.OfCluster(t.Context(), c.server.Config(), "vaults", "the operator says "+c.text, schema.GroupKind{Group: vaultKind.Group, Kind: vaultKind.Kind})
	must(t, err)
	var all []printed
	for name, handler := range map[string]http.Handler{"the cluster": page, "the operator": c.page(t)} {
		for _, address := range []string{"", "objects", "objects?q=FORGED", "object?" + vaultQuery, "timeline?" + vaultQuery} {
			all = append(all, printed{address + " of " + name, "html", get(t, handler, view.Path+address)})
		}
		all = append(all, printed{"the summary of " + name, "json", printable.JSON(get(t, handler, view.Path+view.SummaryPath))})
	}
	return all
}

const vaultQuery = "group=recorded.ctrlkit.dev&kind=Vault&namespace=vaults&name=main"

func get(t *testing.T, handler http.Handler, address string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d %.500s", address, answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// endpoints returns what an operator serves for programs.
func (c *hostileCluster) endpoints(t *testing.T) []printed {
	t.Helper()
	registry := prometheus.NewRegistry()
	observer, err := metrics.New(registry, metrics.Options{})
	must(t, err)
	c.observe(t, observer)
	return []printed{{"the metrics", "text", get(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "/metrics")}}
}

// serveOperator serves what an operator says that has read the hostile cluster.
func (c *hostileCluster) serveOperator(t *testing.T) string {
	ring := journal.NewRing(journal.RingOptions{})
	c.observe(t, ring)
	mux := http.NewServeMux()
	mux.Handle(explanation.Path, explanation.Handler(ring))
	mux.Handle(view.Path, c.page(t))
	resource := orphans.Resource{ID: c.text, Scope: c.text, Owner: c.text}
	object := orphans.Object{Object: journal.Object{Group: "recorded.ctrlkit.dev", Kind: "Vault", Namespace: "vaults", Name: "main"}, ID: c.text}
	serve := func(path string, answer any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer) })
	}
	serve(orphans.Path, orphans.Report{Systems: []orphans.System{
		{Name: c.text, Orphans: []orphans.Resource{resource}, Missing: []orphans.Object{object}}, {Name: "broken", Error: c.text},
	}})
	serve(orphans.ImportPath, orphans.Imports{
		Systems: []orphans.Import{{Name: c.text, Error: c.text, Objects: []map[string]any{{
			"apiVersion": "recorded.ctrlkit.dev/v1", "kind": "Vault", "metadata": map[string]any{"name": "found", "annotations": map[string]any{"id": c.text}}, "spec": map[string]any{c.key(): c.text},
		}}}},
		Adoptions: []orphans.Adoption{{Namespace: "vaults", Patterns: []string{c.text}}},
	})
	return listen(t, mux)
}

// report returns the file of a report of simulations of an operator that prints hostile text.
func (c *hostileCluster) report(t *testing.T) string {
	plan := simreport.Plan{Order: 1, Text: c.text}
	content, err := json.Marshal(simreport.Document{Version: simreport.Version, Simulations: []simreport.Simulation{{
		Package: c.text, Test: c.text, Number: 1, Stopped: c.text, UnusedRules: []string{c.text}, Without: []string{c.text},
		Findings: []simreport.Finding{{
			Key: c.text, Class: c.text, Oracle: oracle.NoSecret, Meaning: c.text, Remedy: c.text, Plans: []simreport.Plan{plan},
			Example: simreport.Example{
				Plan: plan, Note: c.text, Again: c.text, What: c.text, Differences: []oracle.Difference{{Thing: c.text, Path: c.text, Want: c.text, Got: c.text}},
				Write:   &simreport.Write{What: c.text, Actor: c.text, Request: c.text, Object: c.text, Answer: c.text, Changes: []string{c.text}, Stack: []simreport.Site{{File: c.text, Line: 1, Function: c.text}}},
				Excerpt: []string{c.text}, Trace: []string{c.text},
			},
		}},
	}}})
	must(t, err)
	file := filepath.Join(t.TempDir(), "report.json")
	must(t, os.WriteFile(file, content, 0o600))
	return file
}
