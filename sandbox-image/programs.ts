import { chmod, cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Where the programs of an image come from. */
interface Programs {
  node: string;
  launcher: string;
}

/**
 * Copies the programs of an image into its folder of programs. The kernel lets no process of the same user open the memory of a
 * program that this user cannot read. With `unreadableNode` others than root can run Node and not read it, so a runner cannot
 * reach the memory of its supervisor; every other way to hide the memory ends when a program is executed.
 */
export async function stagePrograms(
  { node, launcher }: Programs,
  folder: string,
  { unreadableNode = false } = {},
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await cp(node, join(folder, 'node'));
  await chmod(join(folder, 'node'), unreadableNode ? 0o711 : 0o755);
  // The second name is that of the runners, which look for it beside Node.
  for (const name of ['launcher', 'temper-launcher']) {
    await cp(launcher, join(folder, name));
    await chmod(join(folder, name), 0o755);
  }
}
