/** Which addresses and host names untrusted code may reach: only public ones, in their plain notation. */
import ipaddr from 'ipaddr.js';

/** The only IPv6 block from which global unicast addresses are assigned. */
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether this IP address, in its plain notation, is on the public internet. Private, loopback, link-local, shared, documentation,
 * benchmarking, multicast, reserved and translation ranges are not. An IPv4-mapped IPv6 address is checked as the IPv4 address.
 */
export function isPublicAddress(text: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text).range() === 'unicast';
  if (!ipaddr.IPv6.isValid(text) || isMisread(text)) return false;
  const address = ipaddr.IPv6.parse(text);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().range() === 'unicast';
  return address.range() === 'unicast' && address.match(GLOBAL_V6);
}

/**
 * A zone, or an IPv6 address that ends like an IPv4 address: `ipaddr.js` reads the IPv4-compatible `::8.8.8.8` as the IPv4-mapped
 * `::ffff:8.8.8.8`, which the system does not.
 */
function isMisread(text: string): boolean {
  return text.includes('%') || (text.includes('.') && !text.toLowerCase().startsWith('::ffff:'));
}

const PRIVATE_RANGES: ReadonlySet<string> = new Set(['private', 'uniqueLocal', 'loopback', 'carrierGradeNat']);

/** Whether this IP address is in a private network. Link-local addresses are not: cloud metadata services have them. */
export function isPrivateAddress(text: string): boolean {
  if (!ipaddr.isValid(text) || (text.includes(':') && isMisread(text))) return false;
  return PRIVATE_RANGES.has(ipaddr.process(text).range());
}

/** Suffixes of names that are local to a machine, network or cluster, independent of the addresses they resolve to. */
const INTERNAL_SUFFIXES = [
  'localhost',
  'local',
  'localdomain',
  'internal',
  'intranet',
  'lan',
  'home.arpa',
  'svc',
  'cluster.local',
  'onion',
];

/** Host names of cloud metadata services that look like public names. */
const METADATA_HOSTNAMES: ReadonlySet<string> = new Set(['instance-data.ec2.amazonaws.com', 'metadata.azure.com']);

/** Whether the host name is internal: a single label, a private-use suffix or a metadata service. Expects lower case without a final dot. */
export function isInternalHostname(host: string): boolean {
  if (!host.includes('.') || METADATA_HOSTNAMES.has(host)) return true;
  if (host.split('.').includes('svc')) return true;
  return INTERNAL_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}
