import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HttpLoad } from './load.ts';

const STALL_MS = 200;

describe('a load at a fixed rate', () => {
  it('measures the wait of every request that is due while another stalls', async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests += 1;
      if (requests === 1) setTimeout(() => response.end(), STALL_MS);
      else response.end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const load = new HttpLoad(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 1);
    try {
      const latenciesMs = await load.runAtRate(0.4, 100, () => ({ method: 'GET', path: '/', expect: 200 }));
      expect(latenciesMs).toHaveLength(40);
      // One connection: the requests that are due in the first half of the stall, every 10 ms, wait for at
      // least its second half.
      expect(latenciesMs.filter((ms) => ms >= STALL_MS / 2).length).toBeGreaterThanOrEqual(10);
    } finally {
      await load.close();
      server.close();
    }
  });
});
