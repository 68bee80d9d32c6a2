// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/dsl/model"
)

const goldenPath = "github.com/ctrlkit/ctrlkit/internal/gen/golden/"

// The kinds of the golden models.
var (
	cronJob   = kindIn("controller-kit-demo", goldenPath+"seed/api/v1", "CronJob")
	shop      = kindIn("shop.example.com", goldenPath+"apis/shop/v1", "Shop")
	region    = clusterScoped(kindIn("shop.example.com", goldenPath+"apis/shop/v1", "Region"))
	depot     = kindIn("depot.example.com", goldenPath+"apis/depot/v1", "Depot")
	westDepot = kindIn("west.example.com", goldenPath+"apis/west/depot/v1", "Depot")
	thing     = model.Kind{Group: "own.example.com", Version: "v1", Kind: "Thing", Package: goldenPath + "own", PackageName: "own", Type: "Thing", List: "ThingList", Namespaced: true}
	job       = kindIn("batch", "k8s.io/api/batch/v1", "Job")
	secret    = kindIn("", "k8s.io/api/core/v1", "Secret")
	configMap = kindIn("", "k8s.io/api/core/v1", "ConfigMap")
	pod       = kindIn("", "k8s.io/api/core/v1", "Pod")
	namespace = clusterScoped(kindIn("", "k8s.io/api/core/v1", "Namespace"))
)

func kindIn(group, path, kind string) model.Kind {
	return model.Kind{Group: group, Version: "v1", Kind: kind, Package: path, PackageName: "v1", Type: kind, List: kind + "List", Namespaced: true}
}

func clusterScoped(kind model.Kind) model.Kind {
	kind.Namespaced = false
	return kind
}

// value makes a value of parts: text, or a reference made by one of the functions below.
func value(parts ...any) model.Value {
	var v model.Value
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			v.Parts = append(v.Parts, model.Part{Literal: part})
		case *model.Ref:
			v.Parts = append(v.Parts, model.Part{Ref: part})
		}
	}
	return v
}

// ref refers to a string of the target. A question mark after a field marks a pointer:
// Spec.Ref?.Name
func ref(path string) *model.Ref { return refAs(path, model.TextString) }

func refAs(path string, text model.Text) *model.Ref {
	return &model.Ref{Source: "target." + strings.ReplaceAll(path, "?", ""), Path: steps(path), Text: text}
}

func steps(path string) []model.Step {
	var all []model.Step
	for field := range strings.SplitSeq(path, ".") {
		name, pointer := strings.CutSuffix(field, "?")
		all = append(all, model.Step{Field: name, Pointer: pointer})
	}
	return all
}

// A stateOption is a line in the declaration of a state.
type stateOption func(*model.State)

func one(name string, kind model.Kind, options ...stateOption) *model.State {
	st := &model.State{Name: name, Kind: kind, Namespace: model.Namespace{Mode: model.TargetNamespace}}
	if !kind.Namespaced {
		st.Namespace.Mode = model.NoNamespace
	}
	for _, option := range options {
		option(st)
	}
	return st
}

func list(name string, kind model.Kind, options ...stateOption) *model.State {
	st := one(name, kind, options...)
	st.List = true
	return st
}

func named(parts ...any) stateOption {
	v := value(parts...)
	return func(st *model.State) { st.ObjectName = &v }
}

func label(key string, parts ...any) stateOption {
	return func(st *model.State) {
		st.Labels = append(st.Labels, model.Selector{Key: key, Value: value(parts...)})
	}
}

func field(key, path string, text model.Text, parts ...any) stateOption {
	return func(st *model.State) {
		st.Fields = append(st.Fields, model.Selector{Key: key, Path: steps(path), Text: text, Value: value(parts...)})
	}
}

func controlledBy(parts ...any) stateOption {
	return func(st *model.State) {
		st.Fields = append(st.Fields, model.Selector{Key: ".metadata.controller", ControllerField: true, Value: value(parts...)})
	}
}

func in(parts ...any) stateOption {
	v := value(parts...)
	return func(st *model.State) { st.Namespace = model.Namespace{Mode: model.NamedNamespace, Value: &v} }
}

func everywhere(st *model.State) { st.Namespace = model.Namespace{Mode: model.AllNamespaces} }

func owned(st *model.State) { st.Owned = model.OwnershipController }

func ownedByAny(st *model.State) { st.Owned = model.OwnershipAny }

func commented(lines ...string) stateOption { return func(st *model.State) { st.Doc = lines } }

func manager(name string, target model.Kind, states []*model.State, actions ...*model.Action) *model.Manager {
	return &model.Manager{Name: name, Target: target, States: states, Actions: actions}
}

func action(name string, states ...*model.State) *model.Action {
	return &model.Action{Name: name, States: states}
}

func packageOf(path, name string, documents ...*model.Document) *model.Package {
	return &model.Package{Name: name, Path: goldenPath + path, Documents: documents}
}

func document(file string, managers ...*model.Manager) *model.Document {
	return &model.Document{File: file, Managers: managers}
}

// goldenModels are the models whose Go is in the directories below golden, by directory. Models
// that no document can declare are in testdata, which ctrlkit generate ./... leaves out; tests
// import them.
func goldenModels() map[string]*model.Package {
	return map[string]*model.Package{
		"seed/manager":    seedModel(),
		"selectors":       selectorsModel(),
		"cluster":         clusterModel(),
		"lastelement":     lastElementModel(),
		"values":          valuesModel(),
		"several":         severalModel(),
		"testdata/beyond": beyondModel(),
		"own":             ownModel(),
		"testdata/nasty":  nastyModel(),
	}
}

// seedModel is the CronJob document of the ctrlkit RFC.
func seedModel() *model.Package {
	jobs := list("jobs", job, label("cronjob", ref("Name")), controlledBy(ref("Name")), owned)
	m := manager("CronJobControllerManager", cronJob, []*model.State{jobs},
		action("ListActiveJobsAndUpdateStatus", jobs),
		action("CleanUpOldJobsExceedsHistoryLimits", jobs),
		action("RunNextScheduledJob"),
		action("UpdateCronJobStatus"),
	)
	m.Doc = []string{"CronJobControllerManager declares all the actions needed by the CronJobController."}
	m.Actions[0].Doc = []string{"List all active jobs, and update the status."}
	m.Actions[1].Doc = []string{"Clean up old jobs according to the history limit."}
	m.Actions[2].Doc = []string{"Run the next job if it's on time, or otherwise we should wait", "until the next scheduled time."}
	m.Actions[3].Doc = []string{"Update status of CronJob."}
	return packageOf("seed/manager", "manager", document("cronjob.ctrlkit", m))
}

// selectorsModel has a state for every way to select and to read.
func selectorsModel() *model.Package {
	shopLabel := label("shop", ref("Name"))
	states := []*model.State{
		one("byName", secret, named(ref("Spec.SecretName")), commented("The password of the shop.")),
		one("byNameOwned", secret, named(ref("Name"), "-owned"), owned),
		one("byNameOwnedByAny", secret, named(ref("Name"), "-shared"), ownedByAny),
		one("byNameAndLabel", secret, named(ref("Spec.SecretName")), shopLabel),
		one("byNameAndField", secret, named(ref("Spec.SecretName")), field(".type", "Type", model.TextConvert, "example.com/shop")),
		one("byNameAsField", secret, field(".metadata.name", "Name", model.TextString, ref("Spec.SecretName"))),
		one("byLabel", secret, shopLabel),
		one("byLabelOwned", secret, shopLabel, label("owned", "yes"), owned),
		one("byField", secret, field(".type", "Type", model.TextConvert, "example.com/", ref("Spec.Group"))),
		one("inNamespace", configMap, named("settings"), in(ref("Spec.Place"))),
		one("somewhere", configMap, everywhere, shopLabel),
		list("all", configMap),
		list("allOwned", configMap, owned),
		list("allOwnedByAny", configMap, ownedByAny),
		list("labelled", configMap, shopLabel, label("tier", refAs("Spec.Tier", model.TextConvert))),
		list("controlled", configMap, controlledBy(ref("Name"))),
		list("pods", pod, field(".spec.nodeName", "Spec.NodeName", model.TextString, ref("Spec.Place")),
			field(".spec.priority", "Spec.Priority?", model.TextInt, "0"), shopLabel),
		list("namedAndLabelled", configMap, named(ref("Name")), shopLabel),
		list("namedOwned", configMap, named(ref("Name")), owned),
		list("namedEverywhere", configMap, everywhere, named(ref("Name"))),
		list("labelledEverywhere", configMap, everywhere, shopLabel),
		list("inFixedNamespace", configMap, in("fixed"), label("literal", "yes")),
		list("siblings", shop, label("group", ref("Spec.Group"))),
	}
	return packageOf("selectors", "selectors", document("selectors.ctrlkit", manager("Selectors", shop, states, action("Look", states...))))
}

// clusterModel has a cluster-scoped target, and cluster-scoped kinds as states.
func clusterModel() *model.Package {
	states := []*model.State{
		one("home", namespace, named(ref("Spec.Place"))),
		list("namespaces", namespace, label("region", ref("Name"))),
		list("neighbours", region, field(".spec.group", "Spec.Group", model.TextString, ref("Spec.Group"))),
		list("shops", shop, everywhere, label("region", ref("Name")), owned),
		one("settings", configMap, named("settings"), in(ref("Name"))),
	}
	return packageOf("cluster", "cluster", document("region.ctrlkit", manager("RegionManager", region, states,
		action("Found", states[0], states[1]), action("Supply", states[2], states[3], states[4]))))
}

func lastElementModel() *model.Package {
	depots, west := list("depots", depot), list("westDepots", westDepot)
	return packageOf("lastelement", "lastelement",
		document("depots.ctrlkit", manager("Depots", depot, []*model.State{depots, west}, action("Compare", west, depots))))
}

// valuesModel has values with several references, and with pointers on the way.
func valuesModel() *model.Package {
	states := []*model.State{
		one("mixed", configMap, named(ref("Name"), "-meta-", ref("Namespace"))),
		one("pointers", configMap, named(ref("Spec.Ref?.Next?.Name")), in(ref("Spec.Ref?.Namespace?"))),
		one("numbers", configMap, label("level", refAs("Spec.Level", model.TextInt)), label("size", refAs("Spec.Size", model.TextUint)),
			label("replicas", "r", refAs("Spec.Replicas?", model.TextInt))),
		one("truths", configMap, label("open", refAs("Spec.Open", model.TextBool)), label("flag", refAs("Spec.Flag?", model.TextBool))),
		one("texts", configMap, label("tier", refAs("Spec.TierRef?", model.TextConvert)), label("hours", refAs("Spec.Hours", model.TextStringer))),
		one("joined", configMap, named(ref("Spec.SecretName"), refAs("Spec.Tier", model.TextConvert))),
		list("byPointerField", shop, field(".spec.tierRef", "Spec.TierRef?", model.TextConvert, refAs("Spec.Tier", model.TextConvert)),
			field(".spec.ref.name", "Spec.Ref?.Name", model.TextString, ref("Name"))),
	}
	return packageOf("values", "values", document("values.ctrlkit", manager("Values", shop, states, action("Use", states...))))
}

// severalModel has two documents, two managers in one of them, the same states in several, and
// managers of few words.
func severalModel() *model.Package {
	settings := func() *model.State { return one("settings", configMap, named(ref("Name"))) }
	controlled := func() *model.State { return list("controlled", configMap, controlledBy(ref("Name"))) }
	a, b, c := settings(), settings(), controlled()
	first := manager("First", shop, []*model.State{a, c}, action("UpdateStatus", a, c))
	second := manager("Second", shop, []*model.State{b}, action("UpdateStatus"), action("Greet", b))
	return packageOf("several", "several",
		document("binds.ctrlkit"),
		document("one.ctrlkit", first, second),
		document("two.ctrlkit",
			manager("Idle", region, nil, action("Rest")),
			manager("Empty", shop, nil),
		),
	)
}

// beyondModel has states that the checker rejects and the generator accepts.
func beyondModel() *model.Package {
	states := []*model.State{
		list("byNamespaceField", configMap, everywhere, field(".metadata.namespace", "Namespace", model.TextString, ref("Spec.Place"))),
		one("quotes", configMap, label("app", `say "hi"`), label("path", "`a\\b`")),
	}
	return packageOf("testdata/beyond", "beyond", document("beyond.ctrlkit", manager("Beyond", shop, states, action("Look", states...))))
}

func ownModel() *model.Package {
	things := list("things", thing, owned)
	return packageOf("own", "own", document("thing.ctrlkit", manager("ThingManager", thing, []*model.State{things}, action("Count", things))))
}

// nastyModel has names that clash with those that the generator would like to use.
func nastyModel() *model.Package {
	var states []*model.State
	for _, name := range []string{
		"type", "func", "range", "err", "ctx", "logger", "s", "m", "opts", "impl", "state", "client", "corev1", "fmt", "ctrlkit", "string",
		"nil", "error", "target", "object", "jobs", "jobsErr", "readJobs", "getJobs", "Reader", "list", "obj", "selection", "PVCs", "éclair",
	} {
		states = append(states, one(name, configMap, label("of", ref("Name"))))
	}
	states = append(states, list("lists", configMap, controlledBy(ref("Name"))), one("selectTarget", secret, named("x")))
	actions := []*model.Action{action("Everything", states...), action("state"), action("impl", states[0]), action("logger"), action("String")}
	actions[0].Doc = []string{"go:generate rm -rf", "+build ignore", "", "   indented", "*/ not the end // of it"}
	m := manager("nasty", shop, states, actions...)
	m.Doc = []string{"Deprecated: never use it."}
	return packageOf("testdata/nasty", "nasty", document("a.b-c_linux_test.ctrlkit", m),
		document("linux.ctrlkit", manager("Nasty2", shop, []*model.State{list("x", configMap)})))
}
