import { type Digest, isDigest, sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../lib/json.ts';
import { printable } from '../lib/printable.ts';
import { tryParse } from './transport.ts';

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
export const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';
/** The whole content of the empty descriptor of the image specification. */
export const EMPTY_CONFIG = '{}';
/** Limit of the file of a layer. */
export const MAX_LAYER_BYTES = 1_048_576;
const MAX_LAYERS = 16;
const TITLE = 'org.opencontainers.image.title';

/** What an artifact holds: its type, that of its files, and the command that pushes it. */
export interface ArtifactKind {
  readonly artifactType: string;
  readonly layerType: string;
  readonly command: string;
}

export const TOOL: ArtifactKind = {
  artifactType: 'application/vnd.temper.tool.v1',
  layerType: 'application/vnd.temper.tool.package.v1+json',
  command: 'temper tool push',
};
/** One layer for each file, with the path of the file as its title. */
export const SKILL: ArtifactKind = {
  artifactType: 'application/vnd.temper.skill.v1',
  layerType: 'application/vnd.temper.skill.file.v1',
  command: 'temper skill push',
};
export const ATTESTATION: ArtifactKind = {
  artifactType: 'application/vnd.dsse.envelope.v1+json',
  layerType: 'application/vnd.dsse.envelope.v1+json',
  command: 'temper tool push',
};

/** The descriptor of a blob or a manifest. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

export interface ArtifactFile {
  /** The name of the file, for clients that write files. */
  readonly title: string;
  readonly text: string;
}

export interface ArtifactOptions {
  readonly annotations: Readonly<Record<string, string>>;
  /** What the artifact is about. */
  readonly subject?: Descriptor;
}

export function descriptorOf(mediaType: string, text: string): Descriptor {
  return { mediaType, digest: sha256(text), size: Buffer.byteLength(text) };
}

/** The manifest of an artifact with these files, as JSON text. */
export function artifactManifest(
  kind: ArtifactKind,
  files: readonly ArtifactFile[],
  { annotations, subject }: ArtifactOptions,
): string {
  const layers = files.map(({ title, text }) => ({
    ...descriptorOf(kind.layerType, text),
    annotations: { [TITLE]: title },
  }));
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    artifactType: kind.artifactType,
    config: { ...descriptorOf(EMPTY_TYPE, EMPTY_CONFIG), data: Buffer.from(EMPTY_CONFIG).toString('base64') },
    layers,
    ...(subject === undefined ? {} : { subject }),
    annotations,
  });
}

/** The layer and the subject of a manifest that a registry sent. Throws TEMPER_OCI_CONTENT_INVALID for another kind of artifact. */
export function parseManifest(text: string, kind: ArtifactKind): { layer: Descriptor; subject?: Descriptor } {
  const { layers, subject } = parseArtifact(text, kind, MAX_LAYERS);
  const own = layers.filter((layer) => member(layer, 'mediaType') === kind.layerType);
  const [layer] = own.map((value) => descriptorIn(value, 'the layer'));
  if (layer === undefined || own.length > 1)
    throw contentInvalid(`the manifest has not one layer of the type ${kind.layerType}`);
  if (layer.size > MAX_LAYER_BYTES) throw contentInvalid(`the layer is larger than ${MAX_LAYER_BYTES} bytes`);
  return { layer, ...(subject === undefined ? {} : { subject: descriptorIn(subject, 'the subject') }) };
}

export interface FileLimits {
  readonly files: number;
  /** Of one file and of all. */
  readonly fileBytes: number;
  readonly totalBytes: number;
  /** The form of the path of a file. */
  readonly path: RegExp;
}

/** The files of a manifest, all of which are layers of this kind, by their paths. Throws TEMPER_OCI_CONTENT_INVALID. */
export function parseFileManifest(text: string, kind: ArtifactKind, limits: FileLimits): Map<string, Descriptor> {
  const { layers } = parseArtifact(text, kind, limits.files);
  const files = new Map<string, Descriptor>();
  let bytes = 0;
  for (const layer of layers) {
    const { mediaType, ...descriptor } = descriptorIn(layer, 'a layer');
    if (mediaType !== kind.layerType)
      throw contentInvalid(`a layer is of the type "${printable(mediaType, 100)}" in place of ${kind.layerType}`);
    const title = member(member(layer, 'annotations'), TITLE);
    if (typeof title !== 'string' || !limits.path.test(title))
      throw contentInvalid(
        `a layer has no permitted path of a file: ${printable(JSON.stringify(title) ?? 'none', 100)}`,
      );
    if (files.has(title)) throw contentInvalid(`two layers have the path ${title}`);
    if (descriptor.size > limits.fileBytes) throw contentInvalid(`${title} has more than ${limits.fileBytes} bytes`);
    bytes += descriptor.size;
    if (bytes > limits.totalBytes) throw contentInvalid(`the files have more than ${limits.totalBytes} bytes`);
    files.set(title, { mediaType, ...descriptor });
  }
  return files;
}

function parseArtifact(text: string, kind: ArtifactKind, maxLayers: number): { layers: Json[]; subject?: Json } {
  const manifest = parseObject(text, 'the manifest');
  if (manifest['mediaType'] !== MANIFEST_TYPE)
    throw contentInvalid(
      `the manifest is not of the type ${MANIFEST_TYPE}; the reference may name an image for several platforms`,
    );
  if (manifest['artifactType'] !== kind.artifactType)
    throw contentInvalid(
      `the artifact is not of the type ${kind.artifactType}, so it was not pushed by ${kind.command}`,
    );
  const { layers, subject } = manifest;
  if (!Array.isArray(layers) || layers.length === 0 || layers.length > maxLayers)
    throw contentInvalid(`the manifest has not 1 to ${maxLayers} layers`);
  return { layers, ...(subject === undefined ? {} : { subject }) };
}

/** The manifests that an index lists. Throws TEMPER_OCI_CONTENT_INVALID. */
export function parseIndex(text: string): (Descriptor & { artifactType?: string })[] {
  const index = parseObject(text, 'the list of referrers');
  const { mediaType, manifests } = index;
  if (mediaType !== INDEX_TYPE || !Array.isArray(manifests))
    throw contentInvalid('the list of referrers is not an image index');
  return manifests.map((value) => {
    const artifactType = member(value, 'artifactType');
    return { ...descriptorIn(value, 'a referrer'), ...(typeof artifactType === 'string' ? { artifactType } : {}) };
  });
}

function descriptorIn(value: Json, what: string): Descriptor {
  const [mediaType, digest, size] = ['mediaType', 'digest', 'size'].map((key) => member(value, key));
  if (
    typeof mediaType === 'string' &&
    isDigest(digest) &&
    typeof size === 'number' &&
    Number.isSafeInteger(size) &&
    size >= 0
  )
    return { mediaType, digest, size };
  throw contentInvalid(`${what} has no valid mediaType, digest (sha256) and size`);
}

function parseObject(text: string, what: string): JsonObject {
  const value = tryParse(text);
  if (isJsonObject(value)) return value;
  throw contentInvalid(`${what} is not a JSON object of the expected size`);
}

export function contentInvalid(problem: string): TemperError {
  return new TemperError('TEMPER_OCI_CONTENT_INVALID', `${problem}; nothing of it was used`);
}
