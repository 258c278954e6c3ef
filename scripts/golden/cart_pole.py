"""Reference states of CartPole for apps/examples/src/rl/fixtures/cart-pole-golden.ts: the equations of Gym's classic control (v1, Euler), written out
on their own. Prints the file: python3 scripts/golden/cart_pole.py > apps/examples/src/rl/fixtures/cart-pole-golden.ts"""
import json
import math

gravity, masscart, masspole, length, force_mag, tau = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
total_mass = masspole + masscart
polemass_length = masspole * length


def step(state, action):
    x, x_dot, theta, theta_dot = state
    force = force_mag if action == 1 else -force_mag
    costheta, sintheta = math.cos(theta), math.sin(theta)
    temp = (force + polemass_length * theta_dot**2 * sintheta) / total_mass
    thetaacc = (gravity * sintheta - costheta * temp) / (length * (4.0 / 3.0 - masspole * costheta**2 / total_mass))
    xacc = temp - polemass_length * thetaacc * costheta / total_mass
    return (x + tau * x_dot, x_dot + tau * xacc, theta + tau * theta_dot, theta_dot + tau * thetaacc)


def run(start, actions):
    states = [start]
    for action in actions:
        states.append(step(states[-1], action))
        x, _, theta, _ = states[-1]
        if abs(x) > 2.4 or abs(theta) > 12 * 2 * math.pi / 360:
            break
    return {"actions": actions[: len(states) - 1], "states": states}


runs = [
    run((0.01, -0.02, 0.03, 0.04), [1, 0, 1, 1, 0, 0, 1, 0, 1, 0] * 3),
    run((0.0, 0.0, 0.0, 0.0), [1] * 20),
    run((-2.3, -1.0, 0.02, 0.5), [0] * 20),
]
print("/** Written by scripts/golden/cart_pole.py. The last run ends where the cart leaves the track, the one before where the pole has fallen. */")
print("export const RUNS: readonly { readonly actions: readonly number[]; readonly states: readonly (readonly number[])[] }[] =")
print(json.dumps(runs, indent=2))
