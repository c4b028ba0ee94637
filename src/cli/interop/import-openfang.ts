import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createManifestLoader } from '../../api/manifests.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { importFiles, type Import, type ImportRules } from '../../interop/openfang/import-files.ts';
import { objectName } from '../../interop/openfang/values/object-names.ts';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { createFolder, folderProblem } from '../../standalone/state-folder.ts';
import { WEB_SEARCH } from '../../toolbox/web/search/web-search.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { importedFiles, manifestPath } from './import-files-text.ts';
import { reportData, reportText } from './import-report.ts';
import { readSourceFiles } from './source-files.ts';

export interface ImportOptions {
  paths: string[];
  outDir: string;
  policy: string;
  output: 'text' | 'json';
}

/**
 * Writes manifests and reports for manifests of OpenFang. Exit 0: every file is imported; 1: a file is refused; 2: a path cannot be
 * read, or a file of another content exists, and nothing is written.
 */
export async function importOpenFang(options: ImportOptions, io: CliIo): Promise<number> {
  if (objectName(options.policy) !== options.policy)
    throw new TemperError('TEMPER_USAGE', '--policy is not a name of lower-case letters, digits and dashes');
  const sources = await readSourceFiles(options.paths, io.cwd);
  if (sources.length === 0)
    throw new TemperError(
      'TEMPER_USAGE',
      `no *.toml files in ${options.paths.map((path) => printable(path)).join(', ')}`,
    );
  const result = importFiles(sources, rulesOf(options.policy));
  await writeFiles(resolve(io.cwd, options.outDir), importedFiles(result));
  if (options.output === 'json') writeJson(result, io);
  else writeText(result, options.outDir, io);
  return result.files.every(({ agent }) => agent !== undefined) ? EXIT.ok : EXIT.refused;
}

function rulesOf(policy: string): ImportRules {
  const loader = createManifestLoader({ patterns: PATTERN_RULES });
  return {
    policy,
    patterns: PATTERN_RULES,
    // The search of a service is a tool of every agent to which it is granted, once the service is configured.
    tools: [...builtInDescriptors(), WEB_SEARCH].map(({ name, action }) => ({ name, action })),
    problemsOf: (object) => loader.validate(object).map(({ field, message, fix }) => `${field}: ${message}; ${fix}`),
  };
}

function writeJson({ files }: Import, io: CliIo): void {
  for (const file of files) writeJsonLine(io, reportData(file, manifestPath(file)));
  const refused = files.filter(({ agent }) => agent === undefined).length;
  writeJsonLine(io, { summary: { files: files.length, imported: files.length - refused, refused } });
}

function writeText({ files, policy }: Import, folder: string, io: CliIo): void {
  for (const file of files) io.out(reportText(file, manifestPath(file)));
  const imported = files.filter(({ agent }) => agent !== undefined).length;
  const shared = policy === undefined ? '' : ` with TrustPolicy "${policy.metadata.name}"`;
  io.out(`${imported} of ${files.length} files imported to ${printable(folder, 400)}${shared}\n`);
}

/** Writes all files or none. A file that exists with the same text stays, so that an import can be repeated. */
async function writeFiles(root: string, files: ReadonlyMap<string, string>): Promise<void> {
  const missing: [string, string][] = [];
  for (const [name, text] of files) {
    const existing = await textOf(join(root, name));
    if (existing === undefined) missing.push([join(root, name), text]);
    else if (existing !== text) throw different(join(root, name));
  }
  for (const [path, text] of missing) {
    try {
      await createFolder(dirname(path));
      await writeFile(path, text, { flag: 'wx' });
    } catch (error) {
      throw unwritable(path, error);
    }
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return undefined;
    throw unwritable(path, error);
  }
}

function different(path: string): TemperError {
  const message = `${printable(path, 400)} exists with another content; nothing was written. Choose another folder`;
  return new TemperError('TEMPER_USAGE', message);
}

function unwritable(path: string, cause: unknown): TemperError {
  const message = `${printable(path, 400)} cannot be written: ${folderProblem(cause)}; choose another folder`;
  return new TemperError('TEMPER_USAGE', message, { cause });
}
