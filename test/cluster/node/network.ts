import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Namespaces } from './namespaces.ts';

const run = promisify(execFile);
/** The node's end of the link to the machine. */
const LINK = 'machine';

/** The range for tests of network devices: no real network uses it. The machine's side is .1, the node's .2. */
function addresses(index: number) {
  return { interface: `temper${index}`, machine: `198.18.${index}.1`, node: `198.18.${index}.2` };
}

/**
 * Joins the machine and the node by a link, so that the API server can be called, and returns the node's address. The node reaches nothing
 * beyond it.
 */
export async function makeNetwork(space: Namespaces): Promise<string> {
  const { node } = await makeLink(space.pid);
  const ip = (...args: string[]) => space.run('ip', ...args);
  // Before any link is up: a pod could reach the node by its link-local address past all policies.
  await space.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1', 'net.ipv6.conf.default.disable_ipv6=1');
  await space.run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await ip('link', 'set', 'lo', 'up');
  await ip('address', 'add', `${node}/30`, 'dev', LINK);
  await ip('link', 'set', LINK, 'up');
  // Services have addresses that no link has: the node needs a route before they are translated. It leads nowhere (a bridge that nothing is joined to: not every kernel has dummy links).
  await ip('link', 'add', 'nowhere', 'type', 'bridge');
  await ip('link', 'set', 'nowhere', 'up');
  await ip('route', 'add', 'default', 'dev', 'nowhere', 'src', node);
  return node;
}

/**
 * Takes the link away while the namespaces still live. It would go with them, but connections that nobody answers any more keep the
 * kernel from taking a namespace apart for many minutes.
 */
export async function removeNetwork(pid: number): Promise<void> {
  try {
    await run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', 'link', 'delete', LINK]);
  } catch (error) {
    // One that was never made, by a cluster that did not start.
    if (!String(error).includes('Cannot find device')) throw error;
  }
}

/** Other clusters may run beside this one: the first index that nobody has. */
async function makeLink(pid: number) {
  let last: unknown;
  for (let index = 1; index < 255; index++) {
    const names = addresses(index);
    try {
      const peer = ['peer', 'name', LINK, 'netns', String(pid)];
      await run('ip', ['link', 'add', names.interface, 'type', 'veth', ...peer]);
    } catch (error) {
      last = error;
      continue;
    }
    await run('ip', ['address', 'add', `${names.machine}/30`, 'dev', names.interface]);
    await run('ip', ['link', 'set', names.interface, 'up']);
    return names;
  }
  throw new Error(`no link to the node could be made: ${String(last)}`);
}
