/**
 * Runs the servers of a test run, for the test of how they end. Prints one line of JSON with the TEST_*
 * variables when both are ready, and stops when its standard input closes.
 */
import { startTestServers } from '../private-servers.ts';

const servers = await startTestServers();
process.stdin.resume().once('close', () => void servers.stop().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify(servers.environment)}\n`);
