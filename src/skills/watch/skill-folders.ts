import type { Capability } from '../../api/v1alpha1/capability.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { hasErrors } from '../folder/finding.ts';
import { readSkillFolder, type SkillFolder, type SkillFolderOptions } from '../folder/read-folder.ts';
import { findSkillFolders } from './find-folders.ts';
import { folderStamp } from './folder-stamp.ts';

export interface SkillFoldersOptions extends SkillFolderOptions {
  /** Absolute paths of folders with skills. */
  roots: readonly string[];
  /** Receives each error and warning once for each version of a folder, as one line. */
  onProblem: (problem: string) => void;
}

/** The last version of a folder that was read. */
interface KnownFolder {
  stamp: string;
  /** Those of the last version without errors. */
  capabilities: readonly Capability[];
}

/** How long the files of a folder stay the same before they are read again. */
const DEBOUNCE_MS = 500;

/**
 * The capabilities of folders that their user edits. A changed folder is read when its files stayed the same between two looks at them, so
 * that no half-written version is used. A version with an error is reported, and the one before stays.
 */
export class SkillFolders implements Disposable {
  readonly #options: SkillFoldersOptions;
  readonly #known = new Map<string, KnownFolder>();
  /** The stamps of the last look that differ from the known ones. */
  #changing = new Map<string, string>();
  #capabilities: readonly Capability[] = [];
  #lastProblem = '';
  #timer: NodeJS.Timeout | undefined;
  readonly #looks = new SerialQueue();

  constructor(options: SkillFoldersOptions) {
    this.#options = options;
  }

  /** Reads all folders. Throws TEMPER_USAGE for a root that cannot be read. */
  async open(): Promise<void> {
    for (const folder of await this.#folders()) await this.#read(folder, await folderStamp(folder));
    this.#compose();
  }

  /** Another list after each change. */
  readonly capabilities = (): readonly Capability[] => this.#capabilities;

  /** Looks at the folders until it is disposed. */
  start(): void {
    this.#timer ??= setInterval(() => void this.#looks.run(() => this.look()), DEBOUNCE_MS).unref();
  }

  /** Reads the folders whose files changed before the last look and stayed the same since then. */
  async look(): Promise<void> {
    try {
      const folders = await this.#folders();
      const changing = new Map<string, string>();
      let isChanged = false;
      for (const folder of folders) {
        const stamp = await folderStamp(folder);
        if (stamp === this.#known.get(folder)?.stamp) continue;
        if (this.#changing.get(folder) !== stamp) changing.set(folder, stamp);
        else isChanged = (await this.#read(folder, stamp)) || isChanged;
      }
      const gone = [...this.#known.keys()].filter((folder) => !folders.includes(folder));
      for (const folder of gone) this.#known.delete(folder);
      this.#changing = changing;
      this.#lastProblem = '';
      if (isChanged || gone.length > 0) this.#compose();
    } catch (error) {
      // The folders that were read stay. An error that lasts is reported once.
      const problem = messageOf(error, 300);
      if (problem !== this.#lastProblem) this.#options.onProblem(problem);
      this.#lastProblem = problem;
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  async #folders(): Promise<string[]> {
    const found = await Promise.all(this.#options.roots.map((root) => findSkillFolders(root)));
    return [...new Set(found.flat())];
  }

  /** Returns false when the files changed while they were read: the next look sees them again. */
  async #read(folder: string, stamp: string): Promise<boolean> {
    const read = await readSkillFolder(folder, this.#options);
    if ((await folderStamp(folder)) !== stamp) return false;
    this.#report(folder, read);
    const before = this.#known.get(folder)?.capabilities ?? [];
    const isUsable = !hasErrors(read.findings);
    this.#known.set(folder, { stamp, capabilities: isUsable ? read.capabilities : before });
    return isUsable;
  }

  #report(folder: string, { findings }: SkillFolder): void {
    for (const { level, file, message, fix } of findings)
      this.#options.onProblem(`${level}: ${printable(`${folder}/${file}`, 300)}: ${message}; ${fix}`);
  }

  /** One name is one capability: the first folder with it has precedence. */
  #compose(): void {
    const byName = new Map<string, Capability>();
    for (const [folder, { capabilities }] of this.#known) {
      for (const capability of capabilities) {
        const { name } = capability.metadata;
        if (!byName.has(name)) byName.set(name, capability);
        else
          this.#options.onProblem(
            `error: ${printable(folder, 300)}: another folder has a capability ${name}; rename one`,
          );
      }
    }
    this.#capabilities = [...byName.values()];
  }
}
