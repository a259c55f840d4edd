import { execFileSync } from 'node:child_process';
import { relocateErlang, selectPackages } from './rabbitmq-installation.ts';

describe('selectPackages', () => {
  it('keeps the server, Erlang and the libraries a bare system lacks, once each', () => {
    const apt = [
      'rabbitmq-server',
      '  Depends: erlang-base',
      'erlang-base',
      'erlang-base',
      'libssl3t64',
      'libc6',
      'logrotate',
    ];
    expect(selectPackages(apt.join('\n'))).toEqual(['rabbitmq-server', 'erlang-base', 'libssl3t64']);
  });

  it('leaves out virtual packages, documentation and the other Erlang flavour', () => {
    expect(
      selectPackages(['<esl-erlang>', 'erlang-doc', 'erlang-base-hipe', 'erlang-os-mon'].join('\n')),
    ).toEqual(['erlang-os-mon']);
  });
});

describe('relocateErlang', () => {
  const script = 'x\n    ROOTDIR=/usr/lib/erlang\nROOTDIR="$ERL_ROOTDIR"\nROOTDIR=/usr/lib/erlang\n';

  it('points every ROOTDIR line at the new place, whatever characters it holds', () => {
    const places = [`/a b/$&"\\`, `/it's`, '/plain'];
    const moved = places.reduce((text, place) => {
      const next = relocateErlang(text, place);
      const shown = execFileSync('sh', ['-c', `${next.replace('x\n', '')} printf %s "$ROOTDIR"`], {
        encoding: 'utf8',
      });
      expect(shown).toBe(place);
      return next;
    }, script);
    expect(moved).toBe(`x\n    ROOTDIR='/plain'\nROOTDIR="$ERL_ROOTDIR"\nROOTDIR='/plain'\n`);
  });
});
