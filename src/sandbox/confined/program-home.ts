import { chmod, lstat, mkdir, mkdtemp, opendir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The home of a process, empty at the start. What is in it is untrusted. */
export class ProgramHome implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** A new folder in `parent`. */
  static async create(parent = tmpdir()): Promise<ProgramHome> {
    const home = new ProgramHome(await realpath(await mkdtemp(join(parent, 'temper-program-'))));
    await mkdir(home.workspace);
    return home;
  }

  /** The working folder of the session. */
  get workspace(): string {
    return join(this.path, 'workspace');
  }

  /** Whether the files in it have at most so many entries and bytes. Never reads more entries than that. */
  async fits(limits: { entries: number; bytes: number }): Promise<boolean> {
    let { entries, bytes } = limits;
    const folders = [this.path];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      for await (const entry of await opendir(folder)) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) folders.push(path);
        else bytes -= (await lstat(path)).size;
        entries -= 1;
        if (entries < 0 || bytes < 0) return false;
      }
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeHome(this.path);
  }
}

export async function removeHome(path: string): Promise<void> {
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true });
  await remove().catch(async () => {
    await openFolders(path);
    await remove();
  });
}

/** Gives back the right to list folders that a process created without it. */
async function openFolders(path: string): Promise<void> {
  const folders = [path];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await chmod(folder, 0o700);
    for await (const entry of await opendir(folder)) if (entry.isDirectory()) folders.push(join(folder, entry.name));
  }
}
