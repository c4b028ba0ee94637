import { lstat, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createManifestLoader } from '../../../api/manifests.ts';
import type { Capability } from '../../../api/v1alpha1/capability.ts';
import { builtInNames } from '../../../engine/built-in.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { PATTERN_RULES } from '../../../policy/patterns/pattern-rules.ts';
import type { SkillFolderOptions } from '../../../skills/folder/read-folder.ts';
import { SkillFolders } from '../../../skills/watch/skill-folders.ts';
import type { LocalCapabilities } from '../../../standalone/discovery/local-catalog.ts';
import { contains, realPathOf } from '../../input/private-config.ts';
import type { CliIo } from '../../io.ts';
import { configFolder } from '../../state/config-folder.ts';

/** The skills and catalogue entries of a run. */
export interface UserSkills {
  /** Undefined when there are none and none can appear. */
  capabilities: LocalCapabilities | undefined;
  /** Folders that no tool of an agent may open: an agent must not write its own instructions. */
  roots: readonly string[];
  /** Undefined without folders. */
  folders: SkillFolders | undefined;
}

const SKILLS = 'skills';
/** Write permission of the group and of others. */
const WRITABLE_BY_OTHERS = 0o022;

/** How folders of skills are read. */
export function skillFolderOptions(): SkillFolderOptions {
  const manifests = createManifestLoader({ patterns: PATTERN_RULES });
  return { check: (object) => manifests.validate(object), reserved: builtInNames() };
}

/**
 * The skills of the manifests, of the folders of the command line, and of the folder `skills` in the configuration folder of the user, which
 * are followed until the folders are disposed. Throws TEMPER_USAGE for a folder that cannot be used.
 */
export async function userSkills(
  named: readonly string[],
  manifests: readonly Capability[],
  workspace: string,
  io: CliIo,
): Promise<UserSkills> {
  const roots = [...(await namedRoots(named, workspace, io)), ...(await ownRoot(io))];
  const entries = manifests.filter(({ spec }) => spec.type !== 'Tool');
  if (roots.length === 0)
    return { capabilities: entries.length === 0 ? undefined : () => entries, roots, folders: undefined };
  const folders = new SkillFolders({
    ...skillFolderOptions(),
    roots,
    onProblem: (problem) => io.error(`skills: ${problem}\n`),
  });
  await folders.open();
  folders.start();
  return { capabilities: combined(entries, folders.capabilities), roots, folders };
}

/** Those of the manifests before those of folders. The list stays the same until the folders change. */
function combined(entries: readonly Capability[], changing: LocalCapabilities): LocalCapabilities {
  const names = new Set(entries.map(({ metadata }) => metadata.name));
  let seen: readonly Capability[] | undefined;
  let all: readonly Capability[] = [];
  return () => {
    const current = changing();
    if (current !== seen) all = [...entries, ...current.filter(({ metadata }) => !names.has(metadata.name))];
    seen = current;
    return all;
  };
}

async function namedRoots(named: readonly string[], workspace: string, io: CliIo): Promise<string[]> {
  const roots: string[] = [];
  for (const path of named) {
    const root = await realPathOf(resolve(io.cwd, path));
    if ((await stat(root).catch(() => undefined))?.isDirectory() !== true) throw unusable(path, 'is not a folder');
    if (contains(root, await realPathOf(workspace))) throw unusable(path, 'contains the workspace of the agent');
    roots.push(root);
  }
  return roots;
}

/** Only the user decides which texts agents take as instructions. */
async function ownRoot(io: CliIo): Promise<string[]> {
  const root = join(configFolder(io), SKILLS);
  const info = await lstat(root).catch(() => undefined);
  if (info === undefined) return [];
  if (info.isDirectory() && (info.mode & WRITABLE_BY_OTHERS) === 0) return [root];
  throw new TemperError(
    'TEMPER_USAGE',
    `${printable(root)} has the skills of its user, so it must be a folder that only this user can write; chmod go-w it`,
  );
}

function unusable(path: string, why: string): TemperError {
  return new TemperError('TEMPER_USAGE', `--skills ${printable(path, 300)} ${why}; name a folder with skills`);
}
