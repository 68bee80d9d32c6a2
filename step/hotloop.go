package step

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A hot loop is one of two things: we write the same again and again, because somebody else undoes it; or each of our writes to
// the object makes the event that makes the next write.
const (
	// sameWrites is how often the same may be written within loopWindow.
	sameWrites = 6
	loopWindow = 2 * time.Minute
	// echoes is how many reconciles in a row may write to the object although nobody but us has changed it, each within echoWithin after the one before.
	echoes     = 12
	echoWithin = time.Second

	firstSlow, mostSlow = time.Second, 5 * time.Minute
)

// hot is what is known of writes that come again and again.
type hot struct {
	writes map[uint64][]time.Time // of what was written, by its content
	echoes int
	began  time.Time // of the last reconcile that wrote to the object

	level      int
	until      time.Time // the next reconcile waits until then
	calm       time.Time // when it is over, if nothing more happens
	generation int64
	text       string // for the condition
}

// slowed says whether the object has to wait. A change of its spec and its deletion do not.
func (m *memory[T]) slowed(obj T, now time.Time) bool {
	return now.Before(m.hot.until) && obj.GetGeneration() == m.hot.generation && obj.GetDeletionTimestamp().IsZero()
}

// cool ends a hot loop that did not come again.
func (h *hot) cool(now time.Time) {
	if h.level > 0 && !now.Before(h.calm) {
		h.level, h.until, h.text = 0, time.Time{}, ""
	}
}

// untilCalm returns when to look again, so that the condition does not tell of a hot loop that is over; zero if none is told of.
func (h *hot) untilCalm(now time.Time) time.Duration {
	if h.text == "" {
		return 0
	}
	return max(h.calm.Sub(now), time.Second)
}

// watchHotLoop looks at what the reconcile has written, and returns how long the next one has to wait.
func (r *run[T]) watchHotLoop(ctx context.Context) (slow time.Duration) {
	if r.core == nil {
		return 0
	}
	h := &r.memory.hot
	repeated, count := h.repeated(r.core.written(), r.now)
	within := loopWindow
	if repeated == nil && r.echo() {
		repeated, count, within = lastOwn(r.core.written(), r.key()), h.echoes, time.Duration(h.echoes)*echoWithin
	}
	if repeated == nil {
		if h.text != "" && r.read.GetGeneration() != h.generation {
			h.calm = r.now // somebody has changed the spec, and it did not come again
		}
		return 0
	}
	slow = min(firstSlow<<min(h.level, 10), mostSlow)
	h.level++
	h.until, h.calm = r.now.Add(slow), r.now.Add(slow*2+loopWindow)
	h.generation = r.read.GetGeneration()
	h.echoes = 0
	r.tellHotLoop(ctx, repeated, count, within, slow)
	return slow
}

// repeated returns a write that was made too often, and how often.
func (h *hot) repeated(writes []write, now time.Time) (*write, int) {
	window := loopWindow + time.Duration(sameWrites)*min(firstSlow<<min(h.level, 10), mostSlow)
	for id, times := range h.writes {
		if now.Sub(times[len(times)-1]) > window {
			delete(h.writes, id)
		}
	}
	var found *write
	count := 0
	for i := range writes {
		id := writes[i].id()
		if h.writes == nil {
			h.writes = make(map[uint64][]time.Time)
		}
		times := slices.DeleteFunc(append(h.writes[id], now), func(t time.Time) bool { return now.Sub(t) > window })
		h.writes[id] = times[max(0, len(times)-2*sameWrites):]
		if len(times) >= sameWrites && len(times) > count {
			found, count = &writes[i], len(times)
		}
	}
	return found, count
}

// id is a number for what was written where.
func (w *write) id() uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%s\x00%v\x00%s", w.verb, w.subresource, w.object, withoutNaming(w.content)) // writing to a hash never fails
	return hash.Sum64()
}

// withoutNaming takes out of a patch what is different each time because it guards the write.
func withoutNaming(content string) string {
	var root map[string]any
	if json.Unmarshal([]byte(content), &root) != nil {
		return content
	}
	if metadata, ok := root["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "uid")
	}
	return string(mustJSON(root))
}

// echo counts reconciles that have written to the object although nobody but us has changed it.
func (r *run[T]) echo() bool {
	h := &r.memory.hot
	if !r.saved.any() {
		return false
	}
	own := r.beganWith == r.read.GetResourceVersion() && r.beganWith != ""
	if own && r.now.Sub(h.began) < echoWithin {
		h.echoes++
	} else {
		h.echoes = 0
	}
	h.began = r.now
	return h.echoes >= echoes
}

func lastOwn(writes []write, key client.ObjectKey) *write {
	for i := len(writes) - 1; i >= 0; i-- {
		if writes[i].object.Key() == key {
			return &writes[i]
		}
	}
	return &write{}
}

// tellHotLoop names it: in the journal, in an event when it begins, and in the condition of the next reconcile.
func (r *run[T]) tellHotLoop(ctx context.Context, w *write, count int, within, slow time.Duration) {
	managers := r.managersOf(ctx, w)
	text := fmt.Sprintf("%s of %s is written again and again", orElse(strings.Join(w.fields, ", "), w.verb), w.object)
	switch {
	case len(managers) > 0:
		text += ": field manager " + quoted(managers) + " writes it too, stop one of the two"
	case w.object.Key() == r.key():
		text += ": a step gives it another value each time"
	default:
		text += ": somebody undoes it, or a step gives it another value each time"
	}
	first := r.memory.hot.text == ""
	r.memory.hot.text = text
	if r.journal != nil {
		r.journal.Note(ctx, journal.HotLoop{Reconciles: count, Within: within, Fields: w.fields, Managers: managers, Slowed: slow})
	}
	r.logger.Info("Slowing down a hot loop", "fields", w.fields, "object", w.object.String(), "managers", managers, "slowed", slow)
	if first && r.engine.options.Recorder != nil {
		r.engine.options.Recorder.Eventf(r.req.Object, nil, corev1.EventTypeWarning, ReasonHotLoop, "Reconcile", "%s", text)
	}
}

// managersOf returns the field managers besides us that write what w writes: those that had it when the object was read, and if that is not known,
// those that have written to the object last.
func (r *run[T]) managersOf(ctx context.Context, w *write) []string {
	entries, before := r.read.GetManagedFields(), true
	if w.object.Key() != r.key() || len(entries) == 0 {
		before = false
		entries = r.liveManagers(ctx, w.object)
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return -timeOf(a).Compare(timeOf(b)) })
	var managers []string
	for _, e := range entries {
		if e.Manager == r.engine.options.Name || slices.Contains(managers, e.Manager) {
			continue
		}
		if !before && len(managers) < 2 || ownsOneOf(e, w.fields) {
			managers = append(managers, e.Manager)
		}
	}
	return managers
}

func timeOf(e metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}

// liveManagers asks the API server once, as caches often leave out who manages what.
func (r *run[T]) liveManagers(ctx context.Context, object journal.Object) []metav1.ManagedFieldsEntry {
	if r.engine.options.Live == nil || object.Name == "" {
		return nil
	}
	mapping, err := r.engine.options.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: object.Group, Kind: object.Kind})
	if err != nil {
		return nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if r.req.Live.Get(ctx, object.Key(), obj) != nil {
		return nil
	}
	return obj.GetManagedFields()
}

// ownsOneOf says whether an entry has one of the fields.
func ownsOneOf(e metav1.ManagedFieldsEntry, fields []string) bool {
	var owned map[string]any
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
		return false
	}
	return slices.ContainsFunc(fields, func(path string) bool { return owns(owned, segments(path)) })
}

// owns says whether the set has the path, or something above or below it as a whole.
func owns(set map[string]any, path []string) bool {
	for _, name := range path {
		next, ok := set["f:"+name].(map[string]any)
		if !ok {
			return false
		}
		if len(next) == 0 {
			return true
		}
		set = next
	}
	return true
}

// segments takes apart what collectPaths has put together.
func segments(path string) []string {
	var parts []string
	for path != "" {
		if strings.HasPrefix(path, "[") {
			name, rest, _ := strings.Cut(path[1:], "]")
			parts, path = append(parts, name), rest
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		parts, path = append(parts, path[:end]), path[end:]
	}
	return parts
}
