import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ImportLog } from './keys/import-log.ts';
import { objectName } from './values/object-names.ts';
import { isEmptyList, textAt, textsAt } from './source/source-values.ts';

const MAX_DESCRIPTION = 1_024;
const AUTHOR = 'temper.dev/author';
const TAGS = 'temper.dev/tags';
const VERSION = 'app.kubernetes.io/version';
/** The form of values of Kubernetes labels. */
const LABEL_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Name, labels and annotations. `fallback` names an agent without a name. */
export function importMetadata(source: JsonObject, fallback: string, log: ImportLog): Agent['metadata'] {
  const name = importName(source, fallback, log);
  const labels = importVersion(source, log);
  const annotations = { ...importAuthor(source, log), ...importTags(source, log) };
  return {
    name,
    ...(labels === undefined ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
}

function importName(source: JsonObject, fallback: string, log: ImportLog): string {
  const text = textAt(source, ['name'], log);
  const name = objectName(text ?? fallback);
  if (text === name) log.imported(['name'], text, 'metadata.name');
  else if (text !== undefined)
    log.add(['name'], 'Changed', { value: text, field: 'metadata.name', note: `as ${name}` });
  else if (!log.covers(['name']))
    log.add(['name'], 'Changed', { field: 'metadata.name', note: `the file has no name; ${name} is that of the file` });
  return name;
}

function importVersion(source: JsonObject, log: ImportLog): Record<string, string> | undefined {
  const version = textAt(source, ['version'], log);
  if (version === undefined) return undefined;
  if (!LABEL_VALUE.test(version)) {
    log.add(['version'], 'NotImported', { value: version, note: 'not a value of a Kubernetes label' });
    return undefined;
  }
  log.imported(['version'], version, `metadata.labels["${VERSION}"]`);
  return { [VERSION]: version };
}

function importAuthor(source: JsonObject, log: ImportLog): Record<string, string> {
  const author = textAt(source, ['author'], log);
  if (author === undefined) return {};
  log.imported(['author'], author, `metadata.annotations["${AUTHOR}"]`);
  return author === '' ? {} : { [AUTHOR]: author };
}

function importTags(source: JsonObject, log: ImportLog): Record<string, string> {
  const tags = textsAt(source, ['tags'], log);
  const field = `metadata.annotations["${TAGS}"]`;
  if (isEmptyList(source, ['tags'])) log.imported(['tags'], [], field, 'no tags');
  for (const { path, text } of tags) log.imported(path, text, field);
  return tags.length === 0 ? {} : { [TAGS]: tags.map(({ text }) => text).join(',') };
}

export function importDescription(source: JsonObject, log: ImportLog): AgentSpec['description'] {
  const path = ['description'];
  const text = textAt(source, path, log);
  if (text === undefined) return undefined;
  if (text === '') {
    log.imported(path, text, 'spec.description', 'empty');
    return undefined;
  }
  if (text.length <= MAX_DESCRIPTION) log.imported(path, text, 'spec.description');
  else
    log.add(path, 'Changed', { value: text, field: 'spec.description', note: `cut at ${MAX_DESCRIPTION} characters` });
  return text.slice(0, MAX_DESCRIPTION).toWellFormed();
}

/** Only agents that are a loop of model calls exist here. Another module is another kind of program. */
export function importModule(source: JsonObject, log: ImportLog): void {
  const path = ['module'];
  const module = textAt(source, path, log);
  if (module === undefined) return;
  if (module === 'builtin:chat')
    return log.imported(path, module, 'spec.prompt', 'every Agent is a loop of model calls');
  const kind = /^wasm:|\.wasm$/.test(module)
    ? 'a WASM module'
    : /^python:|\.py$/.test(module)
      ? 'a Python module'
      : undefined;
  const what = kind === undefined ? 'an unknown module' : kind;
  log.refuseFile(path, `${what} is not an agent here; only builtin:chat is imported`, module);
}
