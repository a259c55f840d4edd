import { createScheduling, schedulingConfig } from './scheduling/scheduling.neighbour';
import { runNeighbour } from './neighbour/neighbour';

void runNeighbour(schedulingConfig, process.env, createScheduling);
