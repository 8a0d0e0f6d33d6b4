// Read the block of columns that the page carries; see columns.py.

async function readBlock(text) {
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return unpack(head, bytes.subarray(4 + length));
}

// Put the columns in the place of their descriptions.
function unpack(node, columns) {
  if (Array.isArray(node)) return node.map(one => unpack(one, columns));
  if (node === null || typeof node !== "object") return node;
  if ("type" in node && "at" in node) return numbers(node, columns);
  if ("bytes" in node && "at" in node) return texts(node, columns);
  return Object.fromEntries(Object.entries(node).map(([name, one]) => [name, unpack(one, columns)]));
}

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

function numbers({ at, count, type, delta }, columns) {
  const plain = new TYPES[type](count);
  const size = plain.BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(plain.buffer);
  for (let plane = 0; plane < size; plane++) {
    const from = at + plane * count;
    for (let i = 0, to = plane; i < count; i++, to += size) bytes[to] = columns[from + i];
  }
  const result = Float64Array.from(plain);
  if (delta) for (let i = 1; i < count; i++) result[i] += result[i - 1];
  return result;
}

function texts({ at, bytes, count }, columns) {
  return count ? new TextDecoder().decode(columns.subarray(at, at + bytes)).split("\n") : [];
}
