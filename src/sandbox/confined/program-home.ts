import { mkdir, mkdtemp, opendir, lstat, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The home of a process, empty at the start. What is in it is untrusted. */
export class ProgramHome implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<ProgramHome> {
    const home = new ProgramHome(await realpath(await mkdtemp(join(tmpdir(), 'temper-program-'))));
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
    await rm(this.path, { recursive: true, force: true });
  }
}
