// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
)

// opened is a session with one document, all of whose packages are loaded, and which was right once.
// It has a cursor.
func opened(t testing.TB, text string, codes ...string) (*editor, place) {
	t.Helper()
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	e.load()
	e.replace("shop.ctrlkit", 2, shop)
	e.codes("shop.ctrlkit", 2)
	at := e.replace("shop.ctrlkit", 3, text)
	e.codes("shop.ctrlkit", 3, codes...)
	return e, at
}

// load opens a document with a mistake that is found when all packages are loaded, and waits until
// then.
func (e *editor) load() {
	e.t.Helper()
	e.open("shop.ctrlkit", with("${target.Name}-settings", "${target.Nmae}-settings"))
	e.codes("shop.ctrlkit", 1, "CK0402")
}

// with returns the document shop with another text in place of one, and the cursor in that.
func with(old, text string) string {
	if strings.Count(shop, old) != 1 {
		panic(old)
	}
	return strings.Replace(shop, old, text, 1)
}

func TestFormatting(t *testing.T) {
	wrong := strings.ReplaceAll(with("Report(pods)", "Report( pods )"), "        name=", "name  =   ")
	e, _ := opened(t, wrong)
	var edits []edit
	e.call("textDocument/formatting", e.at("shop.ctrlkit", place{}), &edits)
	if got := apply(wrong, edits); got != shop {
		t.Errorf("got %s", got)
	}
	if len(edits) != 1 || edits[0].Range.Start.Line == 0 {
		t.Errorf("the edit is larger than it has to be: %+v", edits)
	}
	e.replace("shop.ctrlkit", 4, with("Report(pods)", "Report(pods"))
	if err := e.try("textDocument/formatting", e.at("shop.ctrlkit", place{}), &edits); err == nil || !strings.Contains(err.Error(), "mistake of form") {
		t.Errorf("a mistake of form: %v", err)
	}
}

func TestSymbols(t *testing.T) {
	e, _ := opened(t, "alias Dep apps/v1/Deployment\n"+shop, "CK0602")
	type symbol struct {
		Name, Detail string
		Children     []symbol
	}
	var got []symbol
	e.call("textDocument/documentSymbol", e.at("shop.ctrlkit", place{}), &got)
	var lines []string
	for _, s := range got {
		lines = append(lines, s.Name+" "+s.Detail)
		for _, child := range s.Children {
			lines = append(lines, "  "+child.Name+" "+child.Detail)
		}
	}
	want := []string{"Dep alias apps/v1/Deployment", "Shop for Deployment", "  pods []Pod", "  settings ConfigMap", "  Scale (pods, settings)", "  Report (pods)"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
}

// traffic is a document with a kind of a definition, and a reference to a field of its spec.
func traffic(kind, field string) string {
	return "bind traffic.example.com/v1 ./traffic.yaml\n\ndecl Routing for traffic.example.com/v1/" + kind + " {\n    state {\n        pods []Pod {\n            labels/zone=${target.spec." +
		field + "}\n        }\n    }\n\n    action {\n        Look(pods)\n    }\n}\n"
}

func TestHover(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		codes []string
		want  []string
	}{
		"a state": {with("pods []Pod {", "po█ds []Pod {"), nil, []string{
			"pods []Pod {", "pods are the Pods of the Deployment.", "GetPods(ctx) ([]corev1.Pod, error)",
			"- **index**: `ctrlkit:.status.phase`", "- **watch**: by the controlling owner reference",
			`groups="",resources=pods,verbs=get;list;watch`, "- **requests**: none in a reconcile",
		}},
		"an argument": {with("Scale(pods, settings)", "Scale(pods, sett█ings)"), nil, []string{"settings ConfigMap {", "**watch**: by the name"}},
		"an action": {with("Scale(", "█Scale("), nil, []string{
			"Scale counts Pods.", "Scale(ctx context.Context, logger logr.Logger, pods []corev1.Pod, settings *corev1.ConfigMap) (ctrl.Result, error)", "each once in a reconcile",
		}},
		"a kind":                   {with("settings ConfigMap", "settings Config█Map"), nil, []string{"**ConfigMap** `v1`, namespaced", "`k8s.io/api/core/v1`"}},
		"a kind in an alias":       {"alias CM v1/Config█Map\n" + shop, []string{"CK0602"}, []string{"**ConfigMap** `v1`"}},
		"an alias":                 {"alias C█M v1/ConfigMap\n" + shop, []string{"CK0602"}, []string{"**ConfigMap** `v1`"}},
		"a field":                  {with("${target.Name}-settings", "${target.Na█me}-settings"), nil, []string{"**Name** `string`"}},
		"an optional field":        {with("${target.Name}-settings", "${target.Spec.Pa█used?}-settings"), []string{"CK0610"}, []string{"**Paused** `bool`", "Optional: while"}},
		"a default":                {with("${target.Name}-settings", "${target.Lab█els[tier]?gold}-settings"), nil, []string{"**Labels[tier]** `string`", "it stands for `gold`"}},
		"a field of the JSON form": {with("fields/.status.phase", "fields/.status.ph█ase"), nil, []string{"**phase** `v1.PodPhase`", "Values: `Pending`, `Running`", "by an index of the cache"}},
		"the target":               {with("${target.Name}-settings", "${tar█get.Name}-settings"), nil, []string{"**Deployment** `apps/v1`"}},
		"a selector":               {with("            owned", "            own█ed"), nil, []string{"Objects that the target controls"}},
		"a kind of a definition":   {traffic("Ro█ute", "zone"), []string{"CK0703"}, []string{"**Route** `traffic.example.com/v1`, namespaced", "Route leads requests to a Service."}},
		"a field of a definition":  {traffic("Route", "zo█ne"), []string{"CK0703"}, []string{"**zone** `string`", "Zone is the code of a Zone."}},
		"an object of one":         {strings.Replace(traffic("Route", "zone"), "spec", "sp█ec", 1), []string{"CK0703"}, []string{"**spec**", "Spec is the wanted state.\nIt has \"quotes\" and `ticks`."}},
		"a mistake elsewhere":      {strings.Replace(with("pods []Pod {", "po█ds []Pod {"), "Report(pods)", "Report(pod)", 1), []string{"CK0103"}, []string{"GetPods(ctx)"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := opened(t, tt.text, tt.codes...)
			var got struct{ Contents struct{ Value string } }
			e.call("textDocument/hover", e.at("shop.ctrlkit", at), &got)
			for _, want := range tt.want {
				if !strings.Contains(got.Contents.Value, want) {
					t.Errorf("got\n%s\nwithout %q", got.Contents.Value, want)
				}
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want string // labels that are offered, and with a minus those that are not
	}{
		"a statement":           {"█\n" + shop, "bind alias decl -state"},
		"the word for":          {shop + "decl More █", "for"},
		"the kind of a target":  {shop + "decl More for Dep█", "Deployment -Pod"},
		"the kind of an alias":  {"alias P █\n" + shop, "Pod Job -P"},
		"a group and version":   {"bind apps█\n" + shop, "apps/v1 -batch/v1"},
		"the package of a bind": {"bind apps/v1 █\n" + shop, "k8s.io/api/apps/v1"},
		"a block":               {with("    action {", "    █\n    action {"), "state action -pods"},
		"the kind of a state":   {with("settings ConfigMap", "more []Po█\n        settings ConfigMap"), "Pod -Deployment"},
		"the kind of a list":    {with("settings ConfigMap", "more █\n        settings ConfigMap"), "Pod Deployment"},
		"a selector":            {with("            owned", "            █"), "owned owned=any labels/ fields/. name="},
		"a kind, begun":         {with("            owned", "            k█"), "kind= -owned"},
		"a selector, begun":     {with("            owned", "            n█"), "name= namespace= -owned"},
		"the path of a field":   {with("fields/.status.phase=Running", "fields/.█"), "spec status metadata -containers"},
		"further":               {with("fields/.status.phase=Running", "fields/.spec.n█"), "nodeName -hostNetwork"},
		"the value of a field":  {with("phase=Running", "phase=█"), "Pending Running"},
		"all namespaces":        {with("            owned", "            namespace=█"), "*"},
		"a state":               {with("Report(pods)", "Report(█)"), "pods settings"},
		"a further state":       {with("Report(pods)", "Report(pods, █"), "settings -pods"},
		"a state on a line":     {with("Report(pods)", "Report(\n        pods,\n        s█"), "settings -pods"},
		"a reference":           {with("${target.Name}-settings", "${█"), "target -pods -settings"},
		"a reference to a state": {with("        settings ConfigMap {", "        settings ConfigMap {\n            name=a\n        }\n        more ConfigMap {\n            labels/a=${█}"),
			"target settings -more -pods"},
		"a field of the target":    {with("${target.Name}-settings", "${target.█}"), "Name Namespace Spec Labels["},
		"a field in a field":       {with("labels/app=${target.Name}", "labels/app=${target.Spec.█"), "Replicas -Name"},
		"nothing in a comment":     {with("// Scale counts Pods.", "// █"), "-pods -state"},
		"nothing after an action":  {with("Report(pods)", "Report(pods) █"), "-pods -state"},
		"a field of another state": {with("labels/app=${target.Name}", "labels/app=${settings.Na█"), "Name Namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEditor(t, checktest.Loader{}, object{}, nil)
			e.load()
			at := e.replace("shop.ctrlkit", 2, tt.text)
			var got struct{ Items []struct{ Label string } }
			e.call("textDocument/completion", e.at("shop.ctrlkit", at), &got)
			var labels []string
			for _, item := range got.Items {
				labels = append(labels, item.Label)
			}
			for _, want := range strings.Fields(tt.want) {
				label, not := strings.CutPrefix(want, "-")
				if slices.Contains(labels, label) == not {
					t.Errorf("%s in %q", want, labels)
				}
			}
		})
	}
}

// Completion replaces what has been begun.
func TestCompletionReplacesTheBeginning(t *testing.T) {
	text := with("Report(pods)", "Report(pods, se█)")
	e, at := opened(t, text, "CK0103")
	var got struct{ Items []struct{ TextEdit edit } }
	e.call("textDocument/completion", e.at("shop.ctrlkit", at), &got)
	if want := with("Report(pods)", "Report(pods, settings)"); len(got.Items) != 1 || apply(strings.Replace(text, cursor, "", 1), []edit{got.Items[0].TextEdit}) != want {
		t.Errorf("got %+v", got)
	}
}

const actions = `package shop

type shopActions struct{}

func (a *shopActions) Scale(ctx context.Context, logger logr.Logger, pods []corev1.Pod, settings *corev1.ConfigMap) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

type other struct{}

func (other) Report() {}
`

const generated = `// Code generated by ctrlkit from shop.ctrlkit; DO NOT EDIT.

package shop

type Shop struct{}

func (m *Shop) Scale() ctrlkit.Action { return nil }

func (s *ShopState) GetPods(ctx context.Context) ([]corev1.Pod, error) { return nil, nil }
`

// withGo is a session with a document and the Go beside it.
func withGo(t *testing.T, text string) (*editor, place) {
	t.Helper()
	e := newEditor(t, checktest.Loader{}, object{}, map[string]string{"shop.ctrlkit": shop, "actions.go": actions, "zz_generated.shop.go": generated})
	e.load()
	at := e.replace("shop.ctrlkit", 2, text)
	e.codes("shop.ctrlkit", 2)
	return e, at
}

// A found is where the server says that something is.
type found struct {
	URI   string
	Range span
}

// marked writes locations as FILE:LINE, lines from 1.
func (e *editor) marked(list []found) string {
	var texts []string
	for _, l := range list {
		name := strings.TrimPrefix(l.URI, "file://"+e.dir+"/")
		texts = append(texts, name+":"+lineText(e, name, l.Range.Start.Line))
	}
	return strings.Join(texts, "\n")
}

func lineText(e *editor, name string, line int) string {
	text, err := os.ReadFile(e.path(name))
	must(e.t, err)
	return strings.TrimSpace(strings.Split(string(text), "\n")[line])
}

func TestDefinition(t *testing.T) {
	method := "func (a *shopActions) Scale(ctx context.Context, logger logr.Logger, pods []corev1.Pod, settings *corev1.ConfigMap) (ctrl.Result, error) {"
	for name, tt := range map[string]struct{ text, want string }{
		"an argument": {with("Report(pods)", "Report(po█ds)") + strings.Replace(shop, "decl Shop", "decl More", 1), "shop.ctrlkit:pods []Pod {"},
		"an action":   {with("Scale(", "Sca█le("), "actions.go:" + method + "\nzz_generated.shop.go:func (m *Shop) Scale() ctrlkit.Action { return nil }"},
		"a state":     {with("pods []Pod", "pod█s []Pod"), "zz_generated.shop.go:func (s *ShopState) GetPods(ctx context.Context) ([]corev1.Pod, error) { return nil, nil }"},
		"a manager":   {with("decl Shop", "decl Sh█op"), "zz_generated.shop.go:type Shop struct{}"},
		"a value":     {with("Running", "Runn█ing"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := withGo(t, tt.text)
			var got []found
			e.call("textDocument/definition", e.at("shop.ctrlkit", at), &got)
			if marks := e.marked(got); marks != tt.want {
				t.Errorf("got %s", marks)
			}
		})
	}
}

// From Go one comes to the document.
func TestDefinitionFromGo(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"an implementation": {"actions.go", strings.Replace(actions, "Scale", "Sc█ale", 1), "shop.ctrlkit:Scale(pods, settings)"},
		"a getter":          {"zz_generated.shop.go", strings.Replace(generated, "GetPods", "█GetPods", 1), "shop.ctrlkit:pods []Pod {"},
		"another method":    {"actions.go", strings.Replace(actions, "Report", "Re█port", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEditor(t, checktest.Loader{}, object{}, map[string]string{"shop.ctrlkit": shop, "actions.go": actions, "zz_generated.shop.go": generated})
			before, _, _ := strings.Cut(tt.text, cursor)
			var got []found
			e.call("textDocument/definition", e.at(tt.file, endOf(before)), &got)
			if marks := e.marked(got); marks != tt.want {
				t.Errorf("got %s", marks)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	e, at := withGo(t, with("pods []Pod", "pod█s []Pod"))
	params := e.at("shop.ctrlkit", at)
	for declaration, want := range map[bool]string{
		false: "shop.ctrlkit:Scale(pods, settings)\nshop.ctrlkit:Report(pods)\nzz_generated.shop.go:func (s *ShopState) GetPods(ctx context.Context) ([]corev1.Pod, error) { return nil, nil }",
		true:  "shop.ctrlkit:pods []Pod {\nshop.ctrlkit:Scale(pods, settings)\nshop.ctrlkit:Report(pods)\nzz_generated.shop.go:func (s *ShopState) GetPods(ctx context.Context) ([]corev1.Pod, error) { return nil, nil }",
	} {
		params["context"] = object{"includeDeclaration": declaration}
		var got []found
		e.call("textDocument/references", params, &got)
		if marks := e.marked(got); marks != want {
			t.Errorf("with declaration %t: got %s", declaration, marks)
		}
	}
}

type changes struct{ Changes map[string][]edit }

func TestRename(t *testing.T) {
	e, at := opened(t, with("        settings ConfigMap {", "        set█tings ConfigMap {\n            name=a\n        }\n        more []Pod {\n            labels/a=${settings.Name}\n        }\n        old ConfigMap {"),
		"CK0603", "CK0603")
	text := strings.Replace(with("        settings ConfigMap {", "        settings ConfigMap {\n            name=a\n        }\n        more []Pod {\n            labels/a=${settings.Name}\n        }\n        old ConfigMap {"), cursor, "", 1)
	params := e.at("shop.ctrlkit", at)
	params["newName"] = "options"
	var got changes
	e.call("textDocument/rename", params, &got)
	want := text
	for old, new := range map[string]string{"settings ConfigMap": "options ConfigMap", "${settings.": "${options.", ", settings)": ", options)"} {
		want = strings.Replace(want, old, new, 1)
	}
	if renamed := apply(text, got.Changes[e.uri("shop.ctrlkit")]); renamed != want {
		t.Errorf("got %s", renamed)
	}
	for name, problem := range map[string]string{"pods": "there is a state pods already", "a b": "is not a name", "": "is not a name"} {
		params["newName"] = name
		if err := e.try("textDocument/rename", params, nil); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestQuickFix(t *testing.T) {
	for name, tt := range map[string]struct {
		text, codes, want string
	}{
		"a near name":          {with("Report(pods)", "Report(pod█)"), "CK0103", shop},
		"a near field":         {with("${target.Name}-settings", "${target.Na█m}-settings"), "CK0402", shop},
		"a part of a kind":     {with("settings ConfigMap", "settings Config█map"), "CK0201", shop},
		"all of a kind":        {with("pods []Pod", "pods []apps/v1/Po█d"), "CK0204", with("pods []Pod", "pods []v1/Pod")},
		"another way to refer": {with("${target.Name}-settings", "${Na█me}-settings"), "CK0401", shop},
		"a capital letter":     {with("Report(pods)", "re█port(pods)"), "CK0106", shop},
		"what is unused":       {"alias D█ep apps/v1/Deployment\n" + shop, "CK0602", shop},
		"what is left out": {
			with("settings ConfigMap {\n            name=${target.Name}-settings", "settings []ConfigMap {\n            na█me=${target.OwnerReferences[].Name}"), "CK0704",
			with("settings ConfigMap {\n            name=${target.Name}-settings",
				"settings []ConfigMap {\n            name=${target.OwnerReferences[].Name}\n            kind=${target.OwnerReferences[].Kind}"),
		},
		"a brace":       {with("    action {\n        //", "    action█\n        //"), "CK0015", shop},
		"a parenthesis": {with("Report(pods)", "Report(█pods"), "CK0016", shop},
		"a stray brace": {shop + "█}", "CK0014", shop},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := opened(t, tt.text, strings.Fields(tt.codes)...)
			var got []struct {
				Title, Kind string
				Edit        changes
			}
			e.call("textDocument/codeAction", object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}, "range": span{at, at}, "context": object{}}, &got)
			if len(got) == 0 || got[0].Kind != "quickfix" {
				t.Fatalf("got %+v", got)
			}
			if text := apply(strings.Replace(tt.text, cursor, "", 1), got[0].Edit.Changes[e.uri("shop.ctrlkit")]); text != tt.want {
				t.Errorf("%s: got %s", got[0].Title, text)
			}
		})
	}
}

// What would not help is not proposed: there is no namespace x_y.
func TestNoQuickFix(t *testing.T) {
	e, at := opened(t, with("            owned", "            namespace=_█"), "CK0310")
	var got []json.RawMessage
	e.call("textDocument/codeAction", object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}, "range": span{at, at}, "context": object{}}, &got)
	if len(got) > 0 {
		t.Errorf("got %s", got)
	}
}

// A reference that may be empty gets a question mark: as a quick fix of the note, or where an empty
// text would be a value. What is never empty, is optional, or is in another state gets none.
func TestMakeOptional(t *testing.T) {
	inLabel := func(value string) string { return with("labels/app=${target.Name}", "labels/app="+value) }
	for name, tt := range map[string]struct {
		text, codes, kind, want string
	}{
		"with a note":      {traffic("Route", "zo█ne"), "CK0703", "quickfix", traffic("Route", "zone?")},
		"with spaces":      {inLabel("${ target.U█ID }"), "", "refactor", inLabel("${ target.UID? }")},
		"an empty text":    {inLabel("a-${target.UI█D}"), "", "refactor", inLabel("a-${target.UID?}")},
		"no such field":    {inLabel("${target.UI█}"), "CK0402", "", ""},
		"never empty":      {inLabel("${target.Na█me}"), "", "", ""},
		"optional already": {inLabel("${target.UI█D?}"), "", "", ""},
		"another state":    {with("${target.Name}-settings\n        }\n", "${target.Name}-settings\n        }\n        more ConfigMap {\n            name=${settings.Na█me}\n        }\n"), "CK0603", "", ""},
		"beside one":       {inLabel("${target.UID}█-a"), "", "refactor", inLabel("${target.UID?}-a")},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := opened(t, tt.text, strings.Fields(tt.codes)...)
			var all, got []struct {
				Title, Kind string
				IsPreferred bool
				Edit        changes
			}
			e.call("textDocument/codeAction", object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}, "range": span{at, at}, "context": object{}}, &all)
			for _, action := range all {
				if strings.HasPrefix(action.Title, "Make the reference optional") {
					got = append(got, action)
				}
			}
			if tt.kind == "" {
				if len(got) > 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Kind != tt.kind || got[0].IsPreferred {
				t.Fatalf("got %+v of %+v", got, all)
			}
			if text := apply(strings.Replace(tt.text, cursor, "", 1), got[0].Edit.Changes[e.uri("shop.ctrlkit")]); text != tt.want {
				t.Errorf("got %s", text)
			}
		})
	}
}

func TestImplement(t *testing.T) {
	e, at := withGo(t, with("Report(pods)", "Rep█ort(pods)"))
	var got []struct {
		Title string
		Edit  changes
	}
	params := object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}, "range": span{at, at}, "context": object{}}
	e.call("textDocument/codeAction", params, &got)
	if len(got) != 1 || got[0].Title != "Write the Go method for action Report" {
		t.Fatalf("got %+v", got)
	}
	text := apply(actions, got[0].Edit.Changes[e.uri("actions.go")])
	for _, want := range []string{
		"func (impl *shopActions) Report(ctx context.Context, logger logr.Logger, pods []corev1.Pod) (ctrl.Result, error) {",
		`return ctrlkit.RequeueIfError(errors.New("Report is not implemented"))`,
		`corev1 "k8s.io/api/core/v1"`, `ctrl "sigs.k8s.io/controller-runtime"`, `"errors"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwithout %s", text, want)
		}
	}
}

// Without any implementation there is a new file, as generate --skeleton writes it.
func TestImplementTheFirst(t *testing.T) {
	e, at := opened(t, with("Report(pods)", "Rep█ort(pods)"))
	var got []struct {
		Edit struct {
			DocumentChanges []struct {
				Kind, URI    string
				TextDocument struct{ URI string }
				Edits        []edit
			}
		}
	}
	e.call("textDocument/codeAction", object{"textDocument": object{"uri": e.uri("shop.ctrlkit")}, "range": span{at, at}, "context": object{}}, &got)
	if len(got) != 1 || len(got[0].Edit.DocumentChanges) != 2 {
		t.Fatalf("got %+v", got)
	}
	c := got[0].Edit.DocumentChanges
	if c[0].Kind != "create" || c[0].URI != e.uri("shop_actions.go") || c[1].TextDocument.URI != c[0].URI || !strings.Contains(c[1].Edits[0].NewText, "func (impl *shopActions) Report(") {
		t.Errorf("got %+v", c)
	}
}

func TestDrawing(t *testing.T) {
	e, _ := opened(t, shop)
	for want, arguments := range map[string][]string{"svg Shop": {e.uri("shop.ctrlkit")}, "dot Shop": {e.uri("shop.ctrlkit"), "dot"}} {
		var picture string
		e.call("workspace/executeCommand", object{"command": "ctrlkit.drawing", "arguments": arguments}, &picture)
		if picture != want {
			t.Errorf("got %s, want %s", picture, want)
		}
	}
	for _, wrong := range []object{
		{"command": "ctrlkit.drawing", "arguments": []string{e.uri("none.ctrlkit")}},
		{"command": "ctrlkit.drawing", "arguments": []string{e.uri("shop.ctrlkit"), "png"}},
		{"command": "ctrlkit.nothing"},
	} {
		if err := e.try("workspace/executeCommand", wrong, nil); err == nil {
			t.Errorf("%v: no error", wrong)
		}
	}
}
