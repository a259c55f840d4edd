import { KerberosAcceptor, KerberosUnavailableError, TicketRefusedError } from './kerberos-acceptor.service';

/** Mocks the native package. Other tests use the real one against a real realm. */
function packageThat(step: () => Promise<unknown>, initializeServer?: () => Promise<unknown>): void {
  const server = { step, username: 'ivy@CORP.TEST', response: null, contextComplete: true };
  const behaviour = { initializeServer: initializeServer ?? (() => Promise.resolve(server)) };
  jest.doMock('kerberos', () => behaviour, { virtual: true });
}

const open = (): Promise<KerberosAcceptor> => KerberosAcceptor.open('HTTP@auth.corp.test', 1);

describe('KerberosAcceptor', () => {
  afterEach(() => {
    jest.dontMock('kerberos');
    jest.resetModules();
    jest.useRealTimers();
  });

  it('reports at boot what to install if the package is missing', async () => {
    const absent = (): never => {
      throw new Error('Cannot find module');
    };
    jest.doMock('kerberos', absent, { virtual: true });
    await expect(open()).rejects.toThrow(/needs the package `kerberos`.*docker\/install-kerberos/);
  });

  it('reports at boot which setting is wrong if the keytab is unusable', async () => {
    packageThat(
      () => Promise.resolve(),
      () => Promise.reject(new Error("Key table file '/x' not found")),
    );
    await expect(open()).rejects.toThrow(/KRB5_KTNAME.*HTTP@auth\.corp\.test.*not found/);
  });

  it("distinguishes a bad ticket from a fault of the server's own files", async () => {
    packageThat(() => Promise.reject(new Error('Request is a replay')));
    await expect((await open()).accept('AAAA')).rejects.toThrow(TicketRefusedError);
    jest.resetModules();
    packageThat(() => Promise.reject(new Error('No such file or directory (filename: /var/tmp/x.rcache2)')));
    await expect((await open()).accept('AAAA')).rejects.toThrow(KerberosUnavailableError);
  });

  it('times out after five seconds', async () => {
    packageThat(() => new Promise(() => undefined));
    const acceptor = await open();
    jest.useFakeTimers();
    const verdict = expect(acceptor.accept('AAAA')).rejects.toThrow(KerberosUnavailableError);
    await jest.advanceTimersByTimeAsync(5_000);
    await verdict;
  });
});
