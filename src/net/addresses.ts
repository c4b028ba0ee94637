/** Which addresses and names of the network a stranger's code may reach: public ones, written plainly. */
import ipaddr from 'ipaddr.js';

/** The only block of IPv6 from which global addresses are given out. */
const GLOBAL_V6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Is this IP address, in its plain form, one of the public internet? Private, loopback, link-local, shared, documentation,
 * benchmarking, multicast, reserved and translating ranges are not; an IPv4 address inside an IPv6 one is judged as itself.
 */
export function isPublicAddress(text: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text).range() === 'unicast';
  if (!ipaddr.IPv6.isValid(text) || text.includes('%')) return false;
  const address = ipaddr.IPv6.parse(text);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().range() === 'unicast';
  return address.range() === 'unicast' && address.match(GLOBAL_V6);
}

/** Names that mean a machine or a cluster itself, whatever they resolve to. */
const INNER_SUFFIXES = [
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

/** Names of metadata services that have the form of a public name. */
const INNER_NAMES: ReadonlySet<string> = new Set(['instance-data.ec2.amazonaws.com', 'metadata.azure.com']);

/** Is this the name of something inside: one label, a suffix of private use, a metadata service? Lower case, no final dot. */
export function isInnerName(host: string): boolean {
  if (!host.includes('.') || INNER_NAMES.has(host)) return true;
  if (host.split('.').includes('svc')) return true;
  return INNER_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}
