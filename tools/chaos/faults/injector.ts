import type { Cluster } from '../cluster.ts';
import type { Load } from '../load/load.ts';
import type { PlannedFault } from '../plan.ts';

/** What a fault is done to. */
export interface Scene {
  readonly cluster: Cluster;
  readonly load: Load;
}

/** Proof that a fault took place, for the results: what was seen of it from outside. */
export type Proof = string;

/** Does one fault and takes it back; resolves when only the platform's own recovery is left. @throws when it did not take place */
export type Injector = (scene: Scene, fault: PlannedFault) => Promise<Proof>;
