/**
 * The web globals of a guest: URL, URLSearchParams, TextEncoder, TextDecoder, btoa, atob and structuredClone. They are
 * ordinary guest code with no way to the host. The bootstrap holds their source as text and evaluates the text of a group when
 * guest code first reads one of its names, because most tools use none and parsing it takes three milliseconds.
 */
import { defineHidden, type Primordials } from '../guest-language.ts';
import { CLONE_PARTS, exportClone } from './structured-clone.ts';
import { ENCODING_PARTS, exportEncoding } from './encoding.ts';
import { exportUrl, URL_PARTS } from './url.ts';

interface WebGroup {
  names: readonly string[];
  parts: readonly unknown[];
  exporter: () => Record<string, unknown>;
}

const GROUPS: readonly WebGroup[] = [
  { names: ['URL', 'URLSearchParams'], parts: URL_PARTS, exporter: exportUrl },
  { names: ['TextEncoder', 'TextDecoder', 'btoa', 'atob'], parts: ENCODING_PARTS, exporter: exportEncoding },
  { names: ['structuredClone'], parts: CLONE_PARTS, exporter: exportClone },
];

/** Runs in the guest. Defines the names so that reading one of them evaluates the source of their group. */
export function addWebGroup(own: Primordials, names: string, source: string): void {
  const all = own.parse(names) as string[];
  let built: Record<string, unknown> | undefined;
  const read = (name: string): unknown => {
    if (built === undefined) {
      built = own.evaluate(source) as Record<string, unknown>;
      for (let index = 0; index < all.length; index += 1) {
        const known = all[index] as string;
        own.define(built[known] as object, 'name', { value: known, configurable: true });
      }
    }
    defineHidden(own, own.global, name, built[name]);
    return built[name];
  };
  for (let index = 0; index < all.length; index += 1) {
    const name = all[index] as string;
    own.define(own.global, name, {
      configurable: true,
      enumerable: false,
      get: () => read(name),
      set: (value: unknown) => defineHidden(own, own.global, name, value),
    });
  }
}

/** The text that defines all groups, in a scope that has `addWebGroup` and the primordials as `own`. */
export function webGlobalsSource(): string {
  return GROUPS.map(({ names, parts, exporter }) => {
    const source = `(function () {'use strict';\n${parts.map(String).join('\n')}\nreturn ${exporter.name}();})()`;
    return `${addWebGroup.name}(own, ${[JSON.stringify(names), source].map((text) => JSON.stringify(text)).join(', ')});`;
  }).join('\n');
}
