// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
)

func TestMain(m *testing.M) {
	plantest.Main(func(arguments []string) error { return operate(ctrl.SetupSignalHandler(), arguments[0]) })
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue { // they wait most of the time
		if err := f.Value.Set("10"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// operate runs an operator that keeps a Secret for each ConfigMap with the label app and then says
// so in an annotation. bug is what is wrong with it; "" if nothing is.
func operate(ctx context.Context, bug string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	logger := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	mgr, err := ctrl.NewManager(config, ctrl.Options{Logger: logger, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if strings.HasPrefix(bug, shops) {
		r := &shopper{Client: mgr.GetClient(), bug: bug, reported: map[string]bool{}}
		if err := ctrl.NewControllerManagedBy(mgr).For(newShop()).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	switch bug {
	case deaf:
		return listen(ctx, config)
	case skips, echoes, follows:
		return follow(ctx, config, bug)
	}
	r := &apps{Client: mgr.GetClient(), events: mgr.GetEventRecorder("apps"), live: mgr.GetAPIReader(), bug: bug, started: time.Now(), known: map[string]bool{}}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(r); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// listen annotates each ConfigMap that a watch shows, until the watch ends.
func listen(ctx context.Context, config *rest.Config) error {
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return err
	}
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	if err != nil {
		return err
	}
	for event := range w.ResultChan() {
		if app, ok := event.Object.(*corev1.ConfigMap); ok && event.Type != watch.Deleted {
			if err := annotate(ctx, c, app); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return nil
}

// follow annotates each ConfigMap that a list or a watch shows, and lists again when a watch ends.
func follow(ctx context.Context, config *rest.Config, bug string) error {
	c, err := client.NewWithWatch(config, client.Options{})
	for first := true; err == nil && ctx.Err() == nil; first = false {
		all := &corev1.ConfigMapList{}
		if err = c.List(ctx, all); err != nil {
			break
		}
		for i := range all.Items {
			if bug != skips || first {
				err = errors.Join(err, annotate(ctx, c, &all.Items[i]))
			}
		}
		w, failed := c.Watch(ctx, all, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: all.ResourceVersion}})
		if err = errors.Join(err, failed); err != nil {
			break
		}
		for event := range w.ResultChan() {
			app, ok := event.Object.(*corev1.ConfigMap)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			if bug == echoes && event.Type == watch.Added && app.Labels["app"] != "" {
				err = errors.Join(err, c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, GenerateName: "made-"}}))
			}
			err = errors.Join(err, annotate(ctx, c, app))
		}
	}
	return err
}

// annotate says in an annotation that the work for a ConfigMap is done.
func annotate(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	if app.Labels["app"] == "" || app.Annotations["done"] != "" {
		return nil
	}
	app.Annotations = map[string]string{"done": "true"}
	if err := c.Update(ctx, app); !apierrors.IsConflict(err) {
		return err
	}
	return nil // an event shows how it was changed
}

type apps struct {
	client.Client
	live    client.Reader
	events  events.EventRecorder
	bug     string
	started time.Time
	known   map[string]bool // names that it has worked for
	tries   int
	tried   time.Time // the last time

	failures int
	refused  bool // the creation of a Secret
}

// The bugs.
const (
	forgets = "forgets the annotation if the Secret is there"
	restart = "writes when it is started"
	panics  = "panics after a conflict"
	takes   = "takes over a Secret that has the name"
	doubles = "creates a Secret whenever its cache has none"
	deaf    = "does not watch again when a watch ends"
	skips   = "does not look at what it lists when a watch ends"
	echoes  = "creates a Secret for each event that adds a ConfigMap"
	renames = "names its Secret by when it was started"
	resigns = "gives up after two failures"
	once    = "does the work for each name once"
	loses   = "does not see that the Secret it labels is gone"
	orphans = "creates a Secret that nothing deletes"
	repeats = "writes what is there when it is started"
	hides   = "panics where controller-runtime recovers"
	reveals = "logs a password"
	storms  = "asks without an end"
	uses    = "uses a Secret that has no owner"
	sleeps  = "waits for a Secret that nothing watches"
	spins   = "works in a loop without requests after a failure"
	holds   = "holds what it has a finalizer on, and does not say why"

	// These are no bugs.
	labels  = "labels its Secret"
	cleans  = "has a finalizer, and removes it after a while"
	excuses = "holds what it has a finalizer on, and says why in an Event"
	counts  = "counts its tries while a name is not free"
	hashes  = "names its Secret by a hash of the UID of its owner"
	follows = "lists and watches without a cache"
)

func (r *apps) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	if err != nil {
		r.failures++
	}
	if r.bug == spins && apierrors.IsInternalError(err) {
		for ctx.Err() == nil {
		}
	}
	if r.bug == resigns && r.failures == 2 {
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *apps) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, app); apierrors.IsNotFound(err) {
		return r.linger(ctx, req.NamespacedName)
	} else if err != nil || app.Labels["app"] == "" {
		return ctrl.Result{}, err
	}
	switch {
	case app.DeletionTimestamp != nil:
		return r.finish(ctx, app)
	case (r.bug == holds || r.bug == cleans || r.bug == excuses) && controllerutil.AddFinalizer(app, finalizer):
		return ctrl.Result{}, r.Update(ctx, app)
	}
	if (r.bug == once || r.bug == loses) && r.known[app.Name] {
		return ctrl.Result{}, nil
	}
	if r.bug == doubles {
		return r.double(ctx, app.Namespace)
	}
	if err := r.secret(ctx, app); errors.Is(err, errTaken) {
		if r.bug == counts && time.Since(r.tried) > 400*time.Millisecond { // not when its own write wakes it
			r.tries, r.tried = r.tries+1, time.Now()
			app.Annotations = map[string]string{"tries": fmt.Sprint(r.tries)}
			return ctrl.Result{RequeueAfter: 500 * time.Millisecond}, r.Update(ctx, app)
		}
		return ctrl.Result{RequeueAfter: 500 * time.Millisecond}, nil
	} else if err != nil {
		return ctrl.Result{}, client.IgnoreAlreadyExists(err)
	}
	done := "true"
	switch {
	case r.bug == restart:
		done = r.started.Format("05.000")
	case r.bug == storms:
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				for ctx.Err() == nil && r.live.List(ctx, &corev1.SecretList{}) == nil {
				}
			})
		}
		clients.Wait()
	case r.bug == sleeps && r.live.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: "given"}, &corev1.Secret{}) != nil:
		done = "waits"
	case r.bug == reveals:
		given := &corev1.Secret{}
		err := r.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: "given"}, given)
		fmt.Printf("the password is %q (%v)\n", given.Data["password"], err)
	case r.bug == hides && app.Annotations["done"] == done:
		panic("it is done")
	}
	err := r.report(ctx, app, done)
	if r.bug == panics && apierrors.IsConflict(err) {
		go panic("a conflict")
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.doubt(ctx, app)
}

// double creates a Secret if the cache has none.
func (r *apps) double(ctx context.Context, namespace string) (ctrl.Result, error) {
	all := &corev1.SecretList{}
	if err := r.List(ctx, all, client.InNamespace(namespace)); err != nil || len(all.Items) > 0 {
		return ctrl.Result{}, err
	}
	err := r.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "made-"}})
	return ctrl.Result{RequeueAfter: 300 * time.Millisecond}, err
}

const finalizer = "example.com/app"

// finish lets an app go, after two seconds of cleanup.
func (r *apps) finish(ctx context.Context, app *corev1.ConfigMap) (ctrl.Result, error) {
	switch {
	case r.bug == excuses:
		r.events.Eventf(app, nil, corev1.EventTypeWarning, "InUse", "Delete", "it is deleted when it is no longer in use")
	case r.bug != cleans:
	case time.Since(app.DeletionTimestamp.Time) < 3*time.Second:
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case controllerutil.RemoveFinalizer(app, finalizer):
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, app))
	}
	return ctrl.Result{}, nil
}

var errTaken = errors.New("the Secret is another's")

// secret makes the Secret.
func (r *apps) secret(ctx context.Context, app *corev1.ConfigMap) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}, StringData: map[string]string{"password": "x"}}
	if err := controllerutil.SetControllerReference(app, secret, r.Scheme()); err != nil {
		return err
	}
	switch r.bug {
	case orphans:
		secret.OwnerReferences = nil
	case hashes:
		secret.Name = hashed(string(app.UID))
	case renames:
		secret.Name = hashed(string(app.UID) + r.started.String())
	}
	if r.bug == "" || r.bug == repeats || r.bug == counts || r.bug == hashes || r.bug == renames {
		made := &corev1.Secret{}
		if r.Get(ctx, client.ObjectKeyFromObject(secret), made) == nil && metav1.IsControlledBy(made, app) {
			return nil
		}
	}
	err := r.Create(ctx, secret)
	r.refused = r.refused || apierrors.IsInternalError(err)
	if r.bug == doubts && apierrors.IsInternalError(err) {
		r.tried = time.Now()
		return nil
	}
	if err != nil && !apierrors.IsAlreadyExists(err) || err != nil && r.bug == forgets {
		return err
	}
	if err != nil && r.bug == takes {
		err = r.Update(ctx, secret)
	} else if err != nil {
		err = r.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && !metav1.IsControlledBy(secret, app) && r.bug != orphans && r.bug != uses {
			return errTaken
		}
	}
	if err == nil && (r.bug == labels || r.bug == loses || r.bug == uses) {
		secret.Labels = map[string]string{"of": app.Name}
		if err := r.Patch(ctx, secret, client.Merge); err != nil && (r.bug != loses || !apierrors.IsNotFound(err)) {
			return err
		}
	}
	return err
}

func hashed(text string) string { return fmt.Sprintf("cache-%.4x", sha256.Sum256([]byte(text))) }

// report says in an annotation that the work is done.
func (r *apps) report(ctx context.Context, app *corev1.ConfigMap, done string) error {
	if app.Annotations["done"] == done && (r.bug != repeats || r.known[app.Name]) {
		return nil
	}
	app.Annotations = map[string]string{"done": done}
	err := r.Update(ctx, app)
	r.known[app.Name] = err == nil
	return err
}
