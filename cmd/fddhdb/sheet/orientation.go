package sheet

import (
	"bytes"
	"encoding/binary"
	"image"
)

// orientation returns how a JPEG must be turned to be upright: 1 to 8, as in Exif (CIPA
// DC-008). Cameras store the picture of the sensor and the way up it was. 1 is
// unchanged; it is also returned if no orientation is found.
func orientation(data []byte) int {
	const startOfScan = 0xda
	for at := 2; at+4 <= len(data) && data[at] == 0xff && data[at+1] != startOfScan; {
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		end := at + 2 + length
		if length < 2 || end > len(data) {
			break
		}
		if tiff, is := bytes.CutPrefix(data[at+4:end], []byte("Exif\x00\x00")); is && data[at+1] == 0xe1 {
			return tiffOrientation(tiff)
		}
		at = end
	}
	return 1
}

// tiffOrientation returns the orientation in the first directory of a TIFF.
func tiffOrientation(tiff []byte) int {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return 1
	}
	if len(tiff) < 8 || uint64(order.Uint32(tiff[4:]))+2 > uint64(len(tiff)) {
		return 1
	}
	directory := tiff[order.Uint32(tiff[4:]):]
	const entry, tag, short = 12, 0x112, 3
	for i := range int(order.Uint16(directory)) {
		if len(directory) < 2+(i+1)*entry {
			break
		}
		e := directory[2+i*entry:]
		if order.Uint16(e) == tag && order.Uint16(e[2:]) == short {
			if way := int(order.Uint16(e[8:])); way >= 1 && way <= 8 {
				return way
			}
		}
	}
	return 1
}

// upright turns an image by its orientation.
func upright(img *image.NRGBA, way int) *image.NRGBA {
	if way <= 1 || way > 8 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	if way >= 5 {
		out = image.NewNRGBA(image.Rect(0, 0, h, w))
	}
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			u, v := x, y // the source of the pixel
			if way >= 5 {
				u, v = y, x
			}
			switch way {
			case 2, 7, 3, 8: // columns are reversed
				u = w - 1 - u
			}
			switch way {
			case 3, 4, 6, 7: // rows are reversed
				v = h - 1 - v
			}
			out.SetNRGBA(x, y, img.NRGBAAt(u, v))
		}
	}
	return out
}
