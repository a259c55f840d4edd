import { relocateErlang, selectPackages } from './rabbitmq-packages.ts';

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
  it('points every ROOTDIR line at the new place, whatever characters it holds', () => {
    const script = 'x\n    ROOTDIR=/usr/lib/erlang\nROOTDIR=/usr/lib/erlang\n';
    expect(relocateErlang(script, '/a b/$&')).toBe('x\n    ROOTDIR="/a b/$&"\nROOTDIR="/a b/$&"\n');
  });
});
