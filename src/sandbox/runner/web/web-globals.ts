/**
 * The web globals of a guest: URL, URLSearchParams, TextEncoder, TextDecoder, btoa, atob and structuredClone. They are
 * ordinary guest code with no way to the host. The bootstrap asks the runner for the source of a group, and evaluates it, when
 * guest code first reads one of its names: most tools use none, parsing it takes three milliseconds, and a copy in each isolate a tenth
 * of the time of a call.
 */
import type { PostToRunner } from '../guest-host.ts';
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

/** Runs in the guest. Defines the names of a group, a JSON list, so that reading one of them evaluates the source of the group. */
export function addWebGroup(own: Primordials, post: PostToRunner, group: string): void {
  const all = own.parse(group) as string[];
  let built: Record<string, unknown> | undefined;
  const read = (name: string): unknown => {
    if (built === undefined) {
      built = own.evaluate(post('web', group, '')) as Record<string, unknown>;
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

/** The text that defines all groups, in a scope that has `addWebGroup`, the primordials as `own`, and `post`. */
export function webGlobalsSource(): string {
  return GROUPS.map(({ names }) => `${addWebGroup.name}(own, post, ${JSON.stringify(JSON.stringify(names))});`).join(
    '',
  );
}

/** The source of a group; an unknown group has none. */
export function webGroupSource(group: string): string {
  const found = GROUPS.find(({ names }) => JSON.stringify(names) === group);
  if (found === undefined) return '';
  return `(function () {'use strict';\n${found.parts.map(String).join('\n')}\nreturn ${found.exporter.name}();})()`;
}
