//nolint:discarded // the whole file is meant as it stands

package discardedright

func exempt() {
	newCustom()
	defer newCustom()
}
