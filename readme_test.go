package ctrlkit_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// The Go of the README stands here too, so that it is compiled; TestReadme compares the two.

func reconcileCronJob(ctx context.Context, suspended bool, mgr manager) (ctrl.Result, error) {
	workflow := ctrlkit.Finally(
		ctrlkit.Join(
			// Clean up, whatever else fails.
			mgr.CleanUpOldJobs(),
			ctrlkit.Sequential(
				mgr.ListActiveJobs(),
				ctrlkit.If(!suspended, ctrlkit.Timeout(10*time.Second, mgr.RunNextJob())),
			),
		),
		// Always: also after an error, a panic or a wait.
		mgr.UpdateStatus(),
	)
	return ctrlkit.IgnoreExit(workflow.Run(ctx))
}

func (impl) CheckSecret(secret *corev1.Secret) (ctrl.Result, error) {
	if secret == nil {
		return ctrlkit.WaitFor("Secret default/db") // no error, and no backoff: a watch ends it
	}
	return ctrlkit.NoRequeue()
}

type impl struct{}

// manager stands for a generated one.
type manager struct{ *journal }

func (m manager) CleanUpOldJobs() ctrlkit.Action { return m.fails("CleanUpOldJobs") }
func (m manager) ListActiveJobs() ctrlkit.Action { return m.ok("ListActiveJobs") }
func (m manager) RunNextJob() ctrlkit.Action     { return m.waits("RunNextJob") }
func (m manager) UpdateStatus() ctrlkit.Action   { return m.ok("UpdateStatus") }

func TestReadmeWorkflow(t *testing.T) {
	var j journal
	_, err := reconcileCronJob(background(), false, manager{&j})
	if text(err) != "CleanUpOldJobs: boom" {
		t.Error(err)
	}
	j.want(t, "CleanUpOldJobs", "ListActiveJobs", "RunNextJob", "UpdateStatus")
	if _, err := (impl{}).CheckSecret(nil); !errors.Is(err, ctrlkit.ErrExit) {
		t.Error(err)
	}
}

func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d blocks of Go in the README", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(string(compiled), block[1]) {
			t.Errorf("this block of the README is not compiled in readme_test.go:\n%s", block[1])
		}
	}
}
