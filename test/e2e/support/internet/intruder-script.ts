import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { IntruderOrder } from './intruder.ts';

/** The script of an attacker in an agent container, as one text without imports of files. */
export async function intruderScript(order: IntruderOrder): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('intruder.ts', import.meta.url))],
    bundle: true,
    write: false,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    logLevel: 'warning',
  });
  return `globalThis.order = ${JSON.stringify(order)};\n${outputFiles[0]?.text ?? ''}`;
}
