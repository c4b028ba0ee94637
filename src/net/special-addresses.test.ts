import assert from 'node:assert/strict';
import { BlockList, isIPv6 } from 'node:net';
import { describe, it } from 'node:test';
import { assert as check, ipV4, ipV6, property } from 'fast-check';
import { isPublicAddress } from './addresses.ts';

/**
 * Every block of the IANA special-purpose address registries for IPv4 and IPv6, and of the multicast address space registries, with the
 * document that reserves it. The registries are at https://www.iana.org/assignments/iana-ipv4-special-registry/ and
 * https://www.iana.org/assignments/iana-ipv6-special-registry/. IPv4-mapped addresses are checked as IPv4 addresses instead.
 */
const SPECIAL: readonly (readonly [block: string, last: string, name: string, document: string])[] = [
  ['0.0.0.0/8', '0.255.255.255', 'this network', 'RFC 791'],
  ['10.0.0.0/8', '10.255.255.255', 'private use', 'RFC 1918'],
  ['100.64.0.0/10', '100.127.255.255', 'shared address space', 'RFC 6598'],
  ['127.0.0.0/8', '127.255.255.255', 'loopback', 'RFC 1122'],
  ['169.254.0.0/16', '169.254.255.255', 'link-local, with cloud metadata services', 'RFC 3927'],
  ['172.16.0.0/12', '172.31.255.255', 'private use', 'RFC 1918'],
  ['192.0.0.0/24', '192.0.0.255', 'IETF protocol assignments, with DS-Lite, NAT64 discovery and anycast', 'RFC 6890'],
  ['192.0.2.0/24', '192.0.2.255', 'documentation', 'RFC 5737'],
  ['192.31.196.0/24', '192.31.196.255', 'AS112-v4', 'RFC 7535'],
  ['192.52.193.0/24', '192.52.193.255', 'AMT', 'RFC 7450'],
  ['192.88.99.0/24', '192.88.99.255', '6to4 relay anycast', 'RFC 7526'],
  ['192.168.0.0/16', '192.168.255.255', 'private use', 'RFC 1918'],
  ['192.175.48.0/24', '192.175.48.255', 'direct delegation AS112', 'RFC 7534'],
  ['198.18.0.0/15', '198.19.255.255', 'benchmarking', 'RFC 2544'],
  ['198.51.100.0/24', '198.51.100.255', 'documentation', 'RFC 5737'],
  ['203.0.113.0/24', '203.0.113.255', 'documentation', 'RFC 5737'],
  ['224.0.0.0/4', '239.255.255.255', 'multicast', 'RFC 5771'],
  ['240.0.0.0/4', '255.255.255.255', 'reserved, with limited broadcast', 'RFC 1112'],
  ['::/128', '::', 'unspecified', 'RFC 4291'],
  ['::1/128', '::1', 'loopback', 'RFC 4291'],
  ['::/96', '::ffff:ffff', 'IPv4-compatible', 'RFC 4291'],
  ['::ffff:0:0:0/96', '::ffff:0:ffff:ffff', 'IPv4-translated', 'RFC 2765'],
  ['64:ff9b::/96', '64:ff9b::ffff:ffff', 'NAT64', 'RFC 6052'],
  ['64:ff9b:1::/48', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'local NAT64', 'RFC 8215'],
  ['100::/64', '100::ffff:ffff:ffff:ffff', 'discard only', 'RFC 6666'],
  ['100:0:0:1::/64', '100::1:ffff:ffff:ffff:ffff', 'dummy prefix', 'RFC 9780'],
  ['2001::/32', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff', 'Teredo', 'RFC 4380'],
  ['2001:1::/32', '2001:1:ffff:ffff:ffff:ffff:ffff:ffff', 'port control and TURN anycast', 'RFC 7723, RFC 8155'],
  ['2001:2::/48', '2001:2:0:ffff:ffff:ffff:ffff:ffff', 'benchmarking', 'RFC 5180'],
  ['2001:3::/32', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff', 'AMT', 'RFC 7450'],
  ['2001:4:112::/48', '2001:4:112:ffff:ffff:ffff:ffff:ffff', 'AS112-v6', 'RFC 7535'],
  ['2001:10::/28', '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff', 'ORCHID', 'RFC 4843'],
  ['2001:20::/28', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff', 'ORCHIDv2', 'RFC 7343'],
  ['2001:30::/28', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff', 'drone remote identification', 'RFC 9374'],
  ['2001::/23', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'IETF protocol assignments', 'RFC 2928'],
  ['2001:db8::/32', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation', 'RFC 3849'],
  ['2002::/16', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '6to4', 'RFC 3056'],
  ['2620:4f:8000::/48', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff', 'direct delegation AS112', 'RFC 7534'],
  ['3fff::/20', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation', 'RFC 9637'],
  ['5f00::/16', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'SRv6 segment identifiers', 'RFC 9602'],
  ['fc00::/7', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'unique local', 'RFC 4193'],
  ['fe80::/10', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'link-local', 'RFC 4291'],
  ['fec0::/10', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'site-local', 'RFC 3879'],
  ['ff00::/8', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'multicast', 'RFC 4291'],
];

/** The addresses beside the blocks that are on the public internet. */
const BESIDE = [
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '192.0.1.0',
  '192.0.3.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2001:200::',
  '2001:db7:ffff::1',
  '2001:db9::1',
  '2003::1',
  '2620:4f:7fff::1',
  '2620:4f:8001::1',
  '3ffe:ffff::1',
];

describe('addresses of special purpose', () => {
  for (const [block, last, name, document] of SPECIAL) {
    it(`isPublicAddress rejects the first and the last address of ${block}: ${name} (${document})`, () => {
      assert.equal(isPublicAddress(block.slice(0, block.indexOf('/'))), false);
      assert.equal(isPublicAddress(last), false);
    });
  }

  for (const address of BESIDE) {
    it(`isPublicAddress accepts ${address}, which is beside a block`, () =>
      assert.equal(isPublicAddress(address), true));
  }

  it('isPublicAddress rejects every address within a block', () => {
    const blocks = new BlockList();
    for (const [block] of SPECIAL) {
      const [address = '', length = ''] = block.split('/');
      blocks.addSubnet(address, Number(length), isIPv6(address) ? 'ipv6' : 'ipv4');
    }
    const rejects = (address: string, family: 'ipv4' | 'ipv6'): void => {
      if (blocks.check(address, family)) assert.equal(isPublicAddress(address), false, address);
    };
    check(
      property(ipV4(), (address) => rejects(address, 'ipv4')),
      { numRuns: 2_000 },
    );
    check(
      property(ipV6(), (address) => rejects(address, 'ipv6')),
      { numRuns: 2_000 },
    );
  });
});
