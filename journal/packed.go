// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A segment is entries of a history, encoded. Of an object that is well they are seldom looked at,
// and as values they take several times the memory. A text that was there before is its number.
type segment struct {
	data    string
	entries int
}

const segmentBytes = 24 // besides its data

// packedTypes are the events that a segment can have. Their places are part of the encoding.
var packedTypes = []reflect.Type{
	reflect.TypeFor[Triggered](), reflect.TypeFor[Started](), reflect.TypeFor[StepBegan](), reflect.TypeFor[StepEnded](),
	reflect.TypeFor[StepLate](), reflect.TypeFor[StepSkipped](), reflect.TypeFor[ActionBegan](), reflect.TypeFor[ActionEnded](),
	reflect.TypeFor[ActionBlocked](), reflect.TypeFor[Read](), reflect.TypeFor[Wrote](), reflect.TypeFor[Called](),
	reflect.TypeFor[Changed](), reflect.TypeFor[Kept](), reflect.TypeFor[Gated](), reflect.TypeFor[HotLoop](),
	reflect.TypeFor[Unwatched](), reflect.TypeFor[Requeued](), reflect.TypeFor[Finished](),
	reflect.TypeFor[ConditionChanged](),
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	packedNumbers = func() map[reflect.Type]uint64 {
		numbers := make(map[reflect.Type]uint64, len(packedTypes))
		for i, t := range packedTypes {
			numbers[t] = uint64(i)
		}
		return numbers
	}()
)

// usualTexts are in most segments, beside those of the history's object.
var usualTexts = []string{
	"", string(PhaseDo), string(PhasePost), string(ResultDone), string(ResultConverged), string(ChildReady),
	string(CauseOwnChange), string(CauseOwnWrite), string(CauseChildChange), string(CauseForeignChange), string(CauseTimer),
	string(CauseStart), "created", "updated", "deleted", "patch", "apply", "create", "status", "Secret", "ConfigMap", "Service", "Deployment", "apps",
}

// usual returns the texts that a segment of the history begins with.
func (k ringKey) usual() []string {
	return append(slices.Clone(usualTexts), k.controller, k.object.Group, k.object.Kind, k.object.Namespace, k.object.Name)
}

// pack encodes entries of a history with the key. It returns false if one of them can't be encoded.
func pack(key ringKey, entries []kept) (segment, bool) {
	p := packer{texts: key.usual()}
	for i := range entries {
		if !p.entry(&entries[i]) {
			return segment{}, false
		}
	}
	return segment{data: string(p.data), entries: len(entries)}, true
}

type packer struct {
	data  []byte
	texts []string
	when  time.Time
	last  uint64 // the number of the entry before
	runs  []*Run
}

func (p *packer) entry(k *kept) bool {
	number, known := packedNumbers[reflect.TypeOf(k.event)]
	if !known || !p.time(k.when) {
		return false
	}
	p.uint(k.number - p.last)
	p.last = k.number
	p.run(k.run)
	p.uint(number)
	return p.value(reflect.ValueOf(k.event))
}

// run encodes a run by its place, and a new one with its fields.
func (p *packer) run(r *Run) {
	if r == nil {
		p.uint(0)
		return
	}
	i := slices.Index(p.runs, r)
	if i >= 0 {
		p.uint(uint64(i) + 1)
		return
	}
	p.runs = append(p.runs, r)
	p.uint(uint64(len(p.runs)))
	p.text(string(r.ID))
	p.text(r.Controller)
	p.value(reflect.ValueOf(r.Object))
	p.text(string(r.UID))
}

func (p *packer) uint(n uint64) { p.data = binary.AppendUvarint(p.data, n) }
func (p *packer) int(n int64)   { p.data = binary.AppendVarint(p.data, n) }

// time encodes a time without its monotonic clock. It returns false if it is not a local one.
func (p *packer) time(t time.Time) bool {
	if t.IsZero() {
		p.uint(0)
		return true
	}
	if t.Location() != time.Local {
		return false
	}
	t = t.Round(0)
	if p.when.IsZero() {
		p.when = t
		p.uint(1)
		p.int(t.UnixNano())
		return true
	}
	p.uint(2)
	p.int(int64(t.Sub(p.when)))
	return true
}

func (p *packer) text(s string) {
	if i := slices.Index(p.texts, s); i >= 0 {
		p.uint(uint64(i) + 1)
		return
	}
	p.texts = append(p.texts, s)
	p.uint(0)
	p.uint(uint64(len(s)))
	p.data = append(p.data, s...)
}

// value encodes a value, and returns false if that has a type that the encoding does not know.
func (p *packer) value(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		p.text(v.String())
	case reflect.Bool:
		p.uint(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int64:
		p.int(v.Int())
	case reflect.Struct:
		if v.Type() == timeType {
			return p.time(v.Interface().(time.Time)) //nolint:forcetypeassert // the type was compared
		}
		for i := range v.NumField() {
			if !p.value(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice:
		return p.slice(v)
	case reflect.Map:
		return p.settings(v)
	case reflect.Interface:
		return p.error(v)
	default:
		return false
	}
	return true
}

// slice encodes the length of a slice and one, so that zero is nil, and its elements.
func (p *packer) slice(v reflect.Value) bool {
	if v.IsNil() {
		p.uint(0)
		return true
	}
	p.uint(uint64(v.Len()) + 1)
	for i := range v.Len() {
		if !p.value(v.Index(i)) {
			return false
		}
	}
	return true
}

func (p *packer) settings(v reflect.Value) bool {
	settings, ok := v.Interface().(map[string]string)
	if !ok {
		return false
	}
	if settings == nil {
		p.uint(0)
		return true
	}
	p.uint(uint64(len(settings)) + 1)
	for key, value := range settings {
		p.text(key)
		p.text(value)
	}
	return true
}

func (p *packer) error(v reflect.Value) bool {
	if v.IsNil() {
		p.uint(0)
		return true
	}
	e, ok := v.Interface().(*errorText)
	if !ok {
		return false
	}
	p.uint(1)
	p.text(e.text)
	return p.slice(reflect.ValueOf(e.joined))
}

// unpack decodes the entries of a history with the key. Runs are the same in all entries that had
// the same one.
func (s segment) unpack(key ringKey) []kept {
	u := unpacker{data: s.data, texts: key.usual()}
	entries := make([]kept, s.entries)
	for i := range entries {
		k := &entries[i]
		k.when = u.time()
		u.last += u.uint()
		k.number = u.last
		k.run = u.run()
		event := reflect.New(packedTypes[u.uint()]).Elem()
		u.value(event)
		k.event = event.Interface().(Event) //nolint:forcetypeassert // all packed types are events
	}
	return entries
}

type unpacker struct {
	data  string
	texts []string
	when  time.Time
	last  uint64
	runs  []*Run
}

func (u *unpacker) uint() uint64 {
	var n uint64
	for i := 0; ; i++ {
		b := u.data[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			u.data = u.data[i+1:]
			return n
		}
	}
}

func (u *unpacker) int() int64 {
	n := u.uint()
	return int64(n>>1) ^ -int64(n&1) //nolint:gosec // the zigzag encoding of package binary
}

func (u *unpacker) time() time.Time {
	switch u.uint() {
	case 0:
		return time.Time{}
	case 1:
		u.when = time.Unix(0, u.int())
		return u.when
	default:
		return u.when.Add(time.Duration(u.int()))
	}
}

func (u *unpacker) run() *Run {
	i := int(u.uint()) //nolint:gosec // a place in runs
	if i > len(u.runs) {
		r := &Run{ID: types.UID(u.text()), Controller: u.text()}
		u.value(reflect.ValueOf(&r.Object).Elem())
		r.UID = types.UID(u.text())
		u.runs = append(u.runs, r)
	}
	if i == 0 {
		return nil
	}
	return u.runs[i-1]
}

func (u *unpacker) text() string {
	if i := u.uint(); i > 0 {
		return u.texts[i-1]
	}
	n := u.uint()
	s := u.data[:n]
	u.data = u.data[n:]
	u.texts = append(u.texts, s)
	return s
}

func (u *unpacker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(u.text())
	case reflect.Bool:
		v.SetBool(u.uint() == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(u.int())
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(u.time()))
			return
		}
		for i := range v.NumField() {
			u.value(v.Field(i))
		}
	case reflect.Slice:
		u.slice(v)
	case reflect.Map:
		u.settings(v)
	case reflect.Interface:
		if u.uint() == 1 {
			e := &errorText{text: u.text()}
			u.slice(reflect.ValueOf(&e.joined).Elem())
			v.Set(reflect.ValueOf(e))
		}
	}
}

func (u *unpacker) slice(v reflect.Value) {
	n := int(u.uint()) //nolint:gosec // a length
	if n == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
	for i := range n - 1 {
		u.value(v.Index(i))
	}
}

func (u *unpacker) settings(v reflect.Value) {
	n := u.uint()
	if n == 0 {
		return
	}
	settings := make(map[string]string, n-1)
	for range n - 1 {
		key := u.text()
		settings[key] = u.text()
	}
	v.Set(reflect.ValueOf(settings))
}
