// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

// replayFlags are the flags of "ctrlkit replay".
type replayFlags struct {
	planFlags
	crds []string
}

func newReplayCommand() *cobra.Command {
	flags := new(replayFlags)
	cmd := &cobra.Command{
		Use:   "replay FILE OPERATOR [flags] [-- OPERATOR-ARGUMENTS]",
		Short: "Run an operator on recorded objects, and say whether the failure happens again",
		Long: `Replay runs an operator on the objects of a file that "ctrlkit record" has written, in memory, as
"ctrlkit plan" does: what it does is shown, how the objects end that were recorded as stuck, and whether
that is as they were recorded. What was an hour ago in the recording is an hour ago. Other controllers are
played, and values of Secrets are stand-ins.

OPERATOR is a directory with a Go main package, or a program that takes its cluster from KUBECONFIG, in any
language; {kubeconfig} in an argument stands for the path of the file. For a Go package, the lines of a test
are printed that replays the file with faults around it.

Exit codes: 0 no object ends as it was recorded, 2 one does: the failure happens again, 3 that is not known,
1 an error, or wrong usage. They suit "git bisect run".`,
		Example: `  ctrlkit replay stuck.yaml ./cmd
  ctrlkit replay stuck.yaml ./bin/manager -- --leader-elect=false
  ctrlkit replay stuck.yaml ./cmd --crds config/crd/bases   with the definitions of now
  git bisect run ctrlkit replay stuck.yaml ./cmd`,
		Annotations: map[string]string{ownCodes: "true"},
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args); n < 2 || cmd.ArgsLenAtDash() >= 0 && cmd.ArgsLenAtDash() != 2 || cmd.ArgsLenAtDash() < 0 && n != 2 {
				return errors.New("expected the FILE of a recording and an OPERATOR; put the arguments of the operator after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.replay(cmd, args[0], args[1], args[2:]) },
	}
	set := cmd.Flags()
	set.StringArrayVar(&flags.crds, "crds", nil, "`FILE` or directory with definitions to use instead of the recorded ones, repeatable")
	flags.declareRun(cmd)
	flags.output = outputFlag(cmd, "text", "json")
	return cmd
}

// An ending is how a subject of a recording ends. It is a part of what "ctrlkit replay -o json"
// prints.
type ending struct {
	recording.Subject
	Recorded string `json:"recorded"`
	Ends     string `json:"ends"`
	Again    bool   `json:"again"`
	Unseen   bool   `json:"unseen,omitempty"` // by the operator
}

// A replayed recording is what "ctrlkit replay -o json" prints.
type replayed struct {
	Again   bool       `json:"again"`
	Objects []ending   `json:"objects"`
	Plan    *plan.Plan `json:"plan"`
}

func (f *replayFlags) replay(cmd *cobra.Command, file, operator string, arguments []string) error {
	recorded, err := recording.Read(file)
	if err != nil {
		return err
	}
	recorded.At(time.Now().UTC().Truncate(time.Second))
	o, err := f.base(cmd)
	if err != nil {
		return err
	}
	source, err := f.recordedSource(file, recorded)
	if err != nil {
		return err
	}
	o.Source = source
	if o.Operator, err = f.program(cmd, operator, arguments); err != nil {
		return asExit(err, false)
	}
	result := &replayed{Objects: []ending{}}
	o.Ended = func(objects []apiserver.Object) { result.compare(recorded, source, objects) }
	result.Plan, err = plan.For(cmd.Context(), *o)
	if isTerminal(cmd.ErrOrStderr()) {
		fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	if f.output.value == "json" {
		err = writeJSON(cmd.OutOrStdout(), result)
	} else {
		err = f.printReplay(cmd.OutOrStdout(), result, file, operator)
	}
	switch {
	case err != nil:
		return fmt.Errorf("writing what was replayed: %w", err)
	case result.Again:
		return &exitError{code: exitChanges}
	case result.unknown():
		return &exitError{code: exitIncomplete}
	}
	return nil
}

// recordedSource returns the cluster that was recorded.
func (f *replayFlags) recordedSource(file string, r *recording.Recording) (*plan.File, error) {
	manifests, err := readManifests(f.crds)
	if err != nil {
		return nil, err
	}
	for i, obj := range r.Objects {
		replaced := slices.ContainsFunc(manifests, func(m run.Manifest) bool {
			return m.Object.GetKind() == "CustomResourceDefinition" && obj.GetKind() == m.Object.GetKind() && obj.GetName() == m.Object.GetName()
		})
		if !replaced {
			manifests = append(manifests, run.Manifest{File: file, Number: i + 2 + len(r.Reports), Object: obj})
		}
	}
	return newFile(manifests)
}

// newFile returns the cluster of manifests. A kind is known by its definition, which comes first.
func newFile(manifests []run.Manifest) (*plan.File, error) {
	slices.SortStableFunc(manifests, func(a, b run.Manifest) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[a.Object.GetKind() == "CustomResourceDefinition"] - rank[b.Object.GetKind() == "CustomResourceDefinition"]
	})
	return plan.NewFile(manifests)
}

// compare says how the subjects end.
func (r *replayed) compare(recorded *recording.Recording, source *plan.File, objects []apiserver.Object) {
	for _, s := range recorded.Unwell() {
		was := recorded.Find(s)
		e := ending{Subject: s, Recorded: recording.StateOf(was).String(), Unseen: !source.HasRead(was.GroupVersionKind().GroupKind())}
		var is *unstructured.Unstructured
		for _, o := range objects {
			if obj := (&unstructured.Unstructured{Object: o.Content}); obj.GetUID() == was.GetUID() {
				is = obj
			}
		}
		state := recording.StateOf(is)
		e.Ends, e.Again = state.String(), !e.Unseen && recording.StateOf(was).Again(state)
		r.Objects = append(r.Objects, e)
		r.Again = r.Again || e.Again
	}
}

// unknown reports whether nothing can be said about an object, or about the end of it.
func (r *replayed) unknown() bool {
	return len(r.Objects) == 0 || r.Plan.Incomplete() || slices.ContainsFunc(r.Objects, func(e ending) bool { return e.Unseen })
}

// printReplay prints what the operator has done, and how the subjects end.
func (f *replayFlags) printReplay(w io.Writer, r *replayed, file, operator string) error {
	colors := isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if err := r.Plan.Write(w, plan.Style{Colors: colors, All: f.all}); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteByte('\n')
	for _, e := range r.Objects {
		fmt.Fprintf(&text, "%s\n  recorded: %s\n", printable.Line(e.Subject.String()), e.Recorded)
		switch {
		case e.Unseen:
			text.WriteString("  the operator has not read it\n")
		case e.Again:
			text.WriteString("  replayed: the same\n")
		default:
			fmt.Fprintf(&text, "  replayed: %s\n", e.Ends)
		}
	}
	switch {
	case r.Again:
		text.WriteString("The failure happens again.\n")
	case len(r.Objects) == 0:
		text.WriteString("Whether a failure happens again is not known: the recording has no object with which something is wrong.\n")
	case r.unknown():
		text.WriteString("Whether the failure happens again is not known, for the reasons above.\n")
	default:
		text.WriteString("The failure does not happen again.\n")
	}
	if info, err := os.Stat(operator); err == nil && info.IsDir() {
		text.WriteString(testOf(file))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// testOf returns the lines of a test that replays a recording.
func testOf(file string) string {
	return fmt.Sprintf(`
As a test, with the file in testdata:

	func TestRecordedFailure(t *testing.T) {
		sim.Run(t, sim.Workload{
			Scheme: scheme, // with the types of the operator
			Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
				return (&Reconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
			}),
		}, sim.From("testdata/%s"))
	}
`, filepath.Base(file))
}
