import type { Json, JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { CliIo } from '../io.ts';
import { toJsonText, toYamlText } from './data-format.ts';
import type { DataFormat } from './output-formats.ts';

/** An object with its name and the qualified name of its kind. */
export interface NamedObject {
  readonly kind: string;
  readonly name: string;
  readonly value: Json;
}

/** Prints objects: one List, the single object when the user named one, or one `kind/name` per line. */
export function printObjects(objects: readonly NamedObject[], format: DataFormat, isSingle: boolean, io: CliIo): void {
  if (format === 'name') {
    for (const { kind, name } of objects) io.out(`${kind}/${printable(name, 253)}\n`);
    return;
  }
  const [first] = objects;
  const value = isSingle && first !== undefined ? first.value : listOf(objects);
  io.out(format === 'json' ? toJsonText(value) : toYamlText(value));
}

function listOf(objects: readonly NamedObject[]): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'List',
    metadata: { resourceVersion: '' },
    items: objects.map(({ value }) => value),
  };
}
