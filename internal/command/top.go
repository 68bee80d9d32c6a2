// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime/schema"
	human "k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
)

// topFlags are the flags of "ctrlkit top".
type topFlags struct {
	explainFlags
	kinds    []string
	interval time.Duration
	text     string
}

func newTopCommand() *cobra.Command {
	flags := new(topFlags)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the objects of an operator by state, those that are stuck first",
		Long: `Top shows how many objects of an operator are ready, waiting, failing or stalled, and groups those that are not ready by
what is in their way, again and again. In a pipe, and with -o json, it prints that once.

It asks the operator for its page, as "ctrlkit view" does, and otherwise the API server.

Keys: ↑ and ↓ choose a group, ← and → one of its objects, Enter explains that, / filters by what is typed, q ends.

Exit codes: 0, 1 neither the operator nor the API server answers, 2 wrong usage.`,
		Example: `  ctrlkit top
  ctrlkit top --endpoint none --kind widgets.example.com -n shop
  ctrlkit top --filter secret
  ctrlkit top -o json | jq '.groups[] | select(.state != "ready") | .count'`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	flags.register(cmd)
	flags.declareSummary(cmd)
	cmd.Flags().DurationVar(&flags.interval, "interval", 2*time.Second, "`TIME` between two pictures in a terminal")
	flags.output = outputFlag(cmd, "text", "json")
	return cmd
}

// declareSummary declares the flags of what asks for a summary.
func (f *topFlags) declareSummary(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "only objects of this `NAMESPACE`")
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "only objects of this `KIND`, with its group if the operator serves no page: widgets.example.com; repeatable")
	cmd.Flags().StringVar(&f.text, "filter", "", "only objects whose name, state, reason or message has these `WORDS`")
}

func (f *topFlags) run(cmd *cobra.Command) error {
	if f.interval < 100*time.Millisecond {
		return &exitError{exitUsage, fmt.Errorf("--interval %v: must be a tenth of a second at least", f.interval)}
	}
	ask, config, err := f.source(cmd)
	if err != nil {
		return err
	}
	if terminal, ok := screenOf(cmd.OutOrStdout()); ok && f.output.value == "text" {
		return (&topScreen{flags: f, config: config, ask: ask, filter: f.text}).run(cmd.Context(), terminal)
	}
	sum, err := ask(cmd.Context(), f.text)
	if err != nil {
		return err
	}
	if f.output.value == "json" {
		return writeJSON(cmd.OutOrStdout(), sum)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), strings.Join(topLines(sum, time.Now(), 0), "\n")+"\n")
	return err
}

// A summarizer returns a summary, of the objects that have some words.
type summarizer func(ctx context.Context, text string) (view.Summary, error)

// source returns whom to ask: the operator, if it serves a page, or the API server.
func (f *topFlags) source(cmd *cobra.Command) (summarizer, *rest.Config, error) {
	if err := f.checkEndpoint(cmd.Flags().Changed("endpoint")); err != nil {
		return nil, nil, &exitError{exitUsage, err}
	}
	config, _, err := f.cluster("")
	if err != nil && f.endpoint == noEndpoint {
		return nil, nil, err
	}
	why := "the operator was not asked: --endpoint none"
	if f.endpoint != noEndpoint {
		failed := f.servesPage(cmd.Context(), config)
		if failed == nil {
			return f.askOperator(config), config, nil
		}
		if err != nil || cmd.Flags().Changed("endpoint") {
			return nil, nil, failed
		}
		why = failed.Error()
	}
	if err := reach(cmd.Context(), config); err != nil {
		return nil, nil, fmt.Errorf("%w; and %s", err, why)
	}
	config.Timeout = 0 // watches are not to end
	var kinds []schema.GroupKind
	for _, kind := range f.kinds {
		mapping, err := mappingOf(config, kind)
		if err != nil {
			return nil, nil, fmt.Errorf("--kind %s: %w", kind, err)
		}
		kinds = append(kinds, mapping.GroupVersionKind.GroupKind())
	}
	page, err := view.OfCluster(cmd.Context(), config, f.namespace, why, kinds...)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, text string) (view.Summary, error) {
		return page.Summary(ctx, view.Filter{Text: text}), nil
	}, config, nil
}

// askOperator asks the operator for the summary of its page.
func (f *topFlags) askOperator(config *rest.Config) summarizer {
	return func(ctx context.Context, text string) (view.Summary, error) {
		query := url.Values{"q": {text}, "namespace": {f.namespace}}
		if len(f.kinds) == 1 {
			kind, _, _ := strings.Cut(f.kinds[0], ".")
			query.Set("kind", kind)
		}
		got, err := f.get(ctx, config, view.Path+view.SummaryPath, query, 10*time.Second)
		if err == nil {
			err = f.refusal(got, view.Path+"*")
		}
		var sum view.Summary
		if err == nil {
			err = f.decode(got, &sum)
		}
		return sum, err
	}
}

// topLines returns a summary as lines of at most so many characters, of any length if that is zero.
func topLines(sum view.Summary, now time.Time, width int) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, cutLine(fmt.Sprintf(format, args...), width)) }
	for _, notice := range sum.Notices {
		add("! %s", notice)
	}
	for _, k := range sum.Kinds {
		add("%s", kindLine(k))
	}
	for _, c := range sum.Controllers {
		queue := ""
		if c.Queue != nil {
			queue = fmt.Sprintf(", %d in the queue", *c.Queue)
		}
		add("controller %s: %d reconciles in the last minute, %d in the last hour, %d failed%s", c.Name, c.LastMinute, c.Reconciles, c.Failed, queue)
		for _, text := range slices.Concat(c.HotLoops, c.Unwatched) {
			add("  ! %s", text)
		}
	}
	for i := range sum.Groups {
		add("")
		for _, line := range groupLines(&sum.Groups[i], now, -1) {
			add("%s", line)
		}
	}
	return lines
}

func kindLine(k view.KindCount) string {
	text := fmt.Sprintf("%s: %d", strings.TrimSuffix(k.Kind+"."+k.Group, "."), k.Total)
	for _, state := range view.States() {
		if n := k.States[state]; n > 0 {
			text += fmt.Sprintf("  %s %d %s", state.Mark(), n, state)
		}
	}
	return text
}

// groupLines returns what a group has in common, and the first of its objects: those from the
// chosen one on, if there is one, so that it is on the screen.
func groupLines(g *view.Group, now time.Time, chosen int) []string {
	names := make([]string, 0, len(g.Objects))
	for i, o := range g.Objects {
		switch {
		case i == chosen:
			names = append(names, "["+o.String()+"]")
		case i > chosen:
			names = append(names, o.String())
		}
	}
	before, more := "", ""
	if chosen > 0 {
		before = fmt.Sprintf("%d before, ", chosen)
	}
	if n := g.Count - len(g.Objects); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	head := fmt.Sprintf("%s %d %s", g.State.Mark(), g.Count, g.State)
	if g.State != view.Ready {
		head += fmt.Sprintf(", the first for %s: %s", human.HumanDuration(max(0, now.Sub(g.Since))), g.Problem())
	}
	return []string{head, "    " + before + strings.Join(names, ", ") + more}
}

// A topScreen shows summaries in a terminal.
type topScreen struct {
	flags  *topFlags
	config *rest.Config
	ask    summarizer

	filter   string
	typing   bool
	selected int
	object   int // of the group that is selected
	sum      view.Summary
	problem  string // why there is no newer summary
	detail   string // what is shown of one object, empty for the list
}

// run shows summaries until q, Ctrl-C, or the end of the context.
func (s *topScreen) run(ctx context.Context, terminal screen) error {
	keys := make(chan string)
	if term.IsTerminal(int(os.Stdin.Fd())) {
		before, err := term.MakeRaw(int(os.Stdin.Fd()))
		if err != nil {
			return fmt.Errorf("reading keys: %w", err)
		}
		defer term.Restore(int(os.Stdin.Fd()), before) //nolint:errcheck // nothing is left to do
		go readKeys(os.Stdin, keys)
	}
	defer terminal.open()()
	tick := time.NewTicker(s.flags.interval)
	defer tick.Stop()
	s.refresh(ctx)
	for {
		terminal.draw(func(width, height int) []string { return s.lines(time.Now(), width, height) })
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			s.refresh(ctx)
		case key := <-keys:
			if s.press(ctx, key) {
				return nil
			}
		}
	}
}

// readKeys sends what one read returns, which is one key, also of several bytes.
func readKeys(from io.Reader, keys chan<- string) {
	buffer := make([]byte, 32)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		keys <- string(buffer[:n])
	}
}

func (s *topScreen) refresh(ctx context.Context) {
	sum, err := s.ask(ctx, s.filter)
	if s.problem = ""; err != nil {
		s.problem = err.Error()
		return
	}
	s.sum = sum
	s.choose(s.selected, s.object)
}

// choose selects a group and an object of it, or the nearest ones that there are.
func (s *topScreen) choose(group, object int) {
	s.selected, s.object = max(0, min(group, len(s.sum.Groups)-1)), 0
	if s.selected < len(s.sum.Groups) {
		s.object = max(0, min(object, len(s.sum.Groups[s.selected].Objects)-1))
	}
}

// press does what a key is for, and reports whether to end.
func (s *topScreen) press(ctx context.Context, key string) (end bool) {
	switch {
	case key == "\x03":
		return true
	case s.detail != "":
		s.detail = ""
	case s.typing && (key == "\r" || key == "\x1b"):
		s.typing = false
	case s.typing && (key == "\x7f" || key == "\b"):
		_, n := utf8.DecodeLastRuneInString(s.filter)
		s.filter = s.filter[:len(s.filter)-n]
		s.refresh(ctx)
	case s.typing:
		if key >= " " && !strings.HasPrefix(key, "\x1b") {
			s.filter += key
			s.refresh(ctx)
		}
	case key == "q":
		return true
	case key == "/":
		s.typing = true
	case key == "\x1b[A", key == "k":
		s.choose(s.selected-1, 0)
	case key == "\x1b[B", key == "j":
		s.choose(s.selected+1, 0)
	case key == "\x1b[D", key == "h":
		s.choose(s.selected, s.object-1)
	case key == "\x1b[C", key == "l":
		s.choose(s.selected, s.object+1)
	case key == "\r" && s.selected < len(s.sum.Groups):
		s.explain(ctx, s.sum.Groups[s.selected].Objects[s.object])
	}
	return false
}

// explain shows what is known of an object, until the next key.
func (s *topScreen) explain(ctx context.Context, o journal.Object) {
	kind := strings.TrimSuffix(strings.ToLower(o.Kind)+"."+o.Group, ".")
	if s.config == nil {
		s.detail = "Explaining an object needs a cluster: set KUBECONFIG"
		return
	}
	x, err := s.flags.explanation(ctx, s.config, kind, o.Namespace, o.Name)
	if err == nil {
		s.detail, err = s.flags.printed(x)
	}
	if err != nil {
		s.detail = err.Error()
	}
}

// lines returns the picture.
func (s *topScreen) lines(now time.Time, width, height int) []string {
	last := "↑↓ group · ←→ object · Enter explains · / filters · q ends"
	if s.detail != "" {
		return page(s.detail, "any key leads back", width, height)
	}
	all := s.sum
	groups := all.Groups
	all.Groups = nil
	lines := []string{cutLine(fmt.Sprintf("%s · %d objects", cmp.Or(all.Name, "ctrlkit top"), all.Total), width)}
	lines = append(lines, topLines(all, now, width)...)
	if s.filter != "" || s.typing {
		cursor := ""
		if s.typing {
			cursor, last = "▏", "Enter keeps the filter"
		}
		lines = append(lines, cutLine(fmt.Sprintf("/%s%s  %d match", s.filter, cursor, all.Matching), width))
	}
	lines = append(lines, "")
	room := max(1, (height-len(lines)-2)/2)
	first := max(0, s.selected-room+1)
	for i := first; i < min(first+room, len(groups)); i++ {
		pointer, chosen := "  ", -1
		if i == s.selected {
			pointer, chosen = "> ", s.object
		}
		for j, line := range groupLines(&groups[i], now, chosen) {
			if j > 0 {
				pointer = "  "
			}
			lines = append(lines, cutLine(pointer+line, width))
		}
	}
	if s.problem != "" {
		last = "! " + s.problem
	}
	lines = lines[:min(len(lines), height-1)]
	return append(lines, cutLine(last, width))
}
